"""The points of a load: what is asked at each, and the key of the workload it makes. Pure."""

from msgspec.structs import replace

from deploytui.plan.loads import at_place
from deploytui.plan.workload import workload_key
from deploytui.profile.load_schema import Closed, Constant, Gamma, Load, Poisson
from deploytui.profile.rules import sweep
from deploytui.profile.schema import Profile
from deploytui.record.planned import By, PlannedPoint


def counted(load: Load) -> By | None:
    """What a point of the load counts; None for a load that has neither a concurrency nor a rate."""
    match load:
        case Closed():
            return "concurrency"
        case Constant() | Poisson() | Gamma():
            return "rate"
        case _:
            return None


def places(load: Load) -> tuple[float | None, ...]:
    """What is asked at each point, in the order of the points; (None,) for a load that has no such number."""
    match load:
        case Closed(concurrency=int() as users):
            return (float(users),)
        case Constant(rate=float() as rate) | Poisson(rate=float() as rate) | Gamma(rate=float() as rate):
            return (rate,)
        case _:
            return sweep(load) or (None,)


def planned_points(
    profile: Profile, *, dataset_sha256: str | None = None, trace_sha256: str | None = None
) -> tuple[PlannedPoint, ...]:
    """Every point of the profile's load, each with the key that a session of that load alone would have."""
    return tuple(
        PlannedPoint(
            point=point,
            by=counted(profile.workload.load),
            asked=asked,
            workload_key=workload_key(profile, dataset_sha256, trace_sha256=trace_sha256, point=point),
        )
        for point, asked in enumerate(places(profile.workload.load))
    )


def at(profile: Profile, asked: float, requests: int | None = None) -> Profile:
    """The profile with that one concurrency or rate, and perhaps another number of requests."""
    workload = profile.workload
    alone = replace(
        workload, load=at_place(workload.load, asked), decide_at=None, requests=requests or workload.requests
    )
    return replace(profile, workload=alone)
