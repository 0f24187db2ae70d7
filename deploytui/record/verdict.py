"""The decision as a record: verdicts with their reasons. `deploytui.decide` makes them."""

from msgspec import Struct

from deploytui.record.words import DecisionWord


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reason; `code` is a row of the effect table, figures are in the unit of the metric's name."""

    code: str
    metric: str | None = None
    value: float | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    margin: float | None = None
    proof: str | None = None
    """Where the value comes from: events, sidecars, or the engine's own words."""
    text: str = ""
    next: str = ""
    """What to change next."""
    passed: bool = False
    """Whether this line reports a gate that held."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What became of one candidate."""

    candidate: str
    decision: DecisionWord
    comparable: bool = True
    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()
    held: tuple[Reason, ...] = ()
    """Gates that were held, with their figures."""


class Decision(Struct, frozen=True, kw_only=True):
    """The verdict on the session; `final` is false while it runs."""

    decision: DecisionWord
    title: str
    """The sentence with the hardware it holds for."""
    final: bool = True
    accepted: tuple[str, ...] = ()
    """Ordered by the objective, best first."""
    winner: str | None = None
    """None for a tie."""
    recommended: str | None = None
    objective: str | None = None
    tie: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    not_covered: tuple[str, ...] = ()
    fallback: str | None = None
    simulated: bool = False
    verdicts: tuple[Verdict, ...] = ()
