"""What a plan says before anything is known."""

from msgspec import Struct

from deploytui.record.keys import StepKey


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
