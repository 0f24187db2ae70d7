"""The parts of a session that get prompts of their own: the warm-up, and each repeat at each point. Pure."""

from msgspec import Struct

from deploytui.plan.loads import at_point
from deploytui.profile.load_schema import Load
from deploytui.profile.rules import sweep
from deploytui.profile.schema import Workload

WARMUP = "warmup"


class Part(Struct, frozen=True, kw_only=True):
    """One load of the session; `name` is also that of its prompts file."""

    name: str
    requests: int
    load: Load | None = None
    """The load at this point of the sweep; None for the warm-up, whose users only wait for their answers."""
    draw: str = WARMUP
    """Where its lengths and distances are drawn: one place for all points of a repeat, so that points differ in load
    alone."""


def parts(workload: Workload) -> tuple[Part, ...]:
    """The warm-up, then every repeat at every point."""
    points = range(len(sweep(workload.load) or (0,)))
    measured = (measured_part(workload, point, repeat) for repeat in range(workload.repeats) for point in points)
    return (Part(name=WARMUP, requests=workload.warmup_requests), *measured)


def measured_part(workload: Workload, point: int, repeat: int) -> Part:
    """One repeat at one point."""
    return Part(
        name=part_name(workload.load, point, repeat),
        requests=workload.requests,
        load=at_point(workload.load, point),
        draw=f"r{repeat}",
    )


def part_name(load: Load, point: int, repeat: int) -> str:
    """`r0` and so on; `p1.r0` at a point of a sweep."""
    return f"r{repeat}" if sweep(load) is None else f"p{point}.r{repeat}"
