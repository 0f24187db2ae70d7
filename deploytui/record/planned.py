"""What a plan says before anything is known."""

from typing import Literal

from msgspec import Struct

from deploytui.record.keys import StepKey

By = Literal["concurrency", "rate"]
"""What a point of the load counts: requests in flight, or requests sent per second."""


class PlannedCandidate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of the grid before anything is known."""

    name: str
    engine: str
    artifact: str
    differs: dict[str, str] = {}
    """What differs from the baseline: field → `theirs → ours`."""
    factors: tuple[str, ...] = ()


class PlannedStep(Struct, frozen=True, kw_only=True):
    """One step of the plan."""

    key: StepKey
    requests: int


class PlannedPoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place of the load: one of a sweep, one that a search for capacity came to, or the only one there is."""

    point: int
    by: By | None = None
    """None for a load that has neither a concurrency nor a rate."""
    asked: float | None = None
    """Requests in flight, or per second; None as `by`."""
    workload_key: str = ""

    @property
    def label(self) -> str:
        """The place in words, such as `concurrency 16` or `rate 2.5/s`."""
        return point_label(self.by, self.asked) or f"point {self.point}"


def point_label(by: By | None, asked: float | None) -> str:
    """Such as `concurrency 16` or `rate 2.5/s`; empty for a load that has neither."""
    if by is None or asked is None:
        return ""
    return f"{by} {asked:.6g}{'/s' if by == 'rate' else ''}"
