"""How much load a candidate bears within the gates, as a record. `deploytui.plan.capacity` searches for it."""

from msgspec import Struct

from deploytui.record.planned import By


class Search(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is asked of a search: the ends of its range, included, and how often a point is measured."""

    by: By
    lowest: float
    highest: float
    repeats: int = 3
    most_repeats: int = 9
    """Of a point whose gates stay undecided."""
    tolerance: float = 0.05
    """The widest interval that is left, as a share of its low end; a concurrency is never told closer than 1."""
    budget_s: float | None = None
    """Time to measure in, all candidates together [s]; None for as long as it takes."""


class TriedPoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One load that was tried, and what came of it."""

    asked: float
    repeats: int
    held: bool
    """Whether the gates held."""
    noisy: bool = False
    """Whether they stayed undecided after all repeats, so that the observed values had to tell."""
    hopeless: bool = False
    """Whether they were missed by so much that further repeats were spared."""
    gate: str = ""
    """The metric that was furthest beyond its limit, such as `ttft_ms.p95`; empty when all held."""
    why: str = ""
    """That gate in words."""


class Capacity(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of a search; the capacity lies from `value` up to, not including, `first_bad`."""

    by: By
    value: float | None
    """The highest load that held the gates below the first that did not; None when none did."""
    first_bad: float | None
    """The lowest load that missed them; None when none did."""
    gate: str = ""
    """What was missed first, at `first_bad`: a metric such as `ttft_ms.p95`."""
    why: str = ""
    tried: tuple[TriedPoint, ...] = ()
    """In the order in which they were tried."""
    notes: tuple[str, ...] = ()
    """What a reader must know: noise, answers that contradict each other, a search that was cut short."""
    complete: bool = True
    """False when the search ended before the interval was as narrow as asked."""

    @property
    def span(self) -> str:
        """Where the capacity lies, such as `24`, `24 to 26`, `2.5/s to 2.6/s`, `at least 1024` or `none`."""
        unit = "/s" if self.by == "rate" else ""
        if self.value is None:
            return "none"
        low = f"{self.value:.6g}{unit}"
        if self.first_bad is None:
            return f"at least {low}"
        last = self.first_bad - 1 if self.by == "concurrency" else self.first_bad
        return low if last <= self.value else f"{low} to {last:.6g}{unit}"
