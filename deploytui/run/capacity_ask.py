"""What `capacity` is asked for: the range of loads to search, and whether the profile can answer at all."""

from dataclasses import dataclass

from msgspec.structs import replace

from deploytui.decide.capacity import BOUNDS, bounds
from deploytui.definitions import requests_needed, samples_needed
from deploytui.errors import UsageError
from deploytui.plan.loads import most_users
from deploytui.plan.points import counted
from deploytui.profile.load_schema import Closed, Constant, Gamma, Load, Poisson
from deploytui.profile.rules import sweep
from deploytui.profile.schema import Profile
from deploytui.record.capacity import Search
from deploytui.record.planned import By

HIGHEST = 1024.0
"""Where a search ends that is not told; doubling gets no further than the load that fails."""
MORE_REPEATS = 3
"""Times the asked repeats that a point may get whose gates stay undecided."""


@dataclass(frozen=True)
class Wish:
    """The options of the command; None where nothing was said."""

    by: By | None = None
    lowest: float | None = None
    highest: float | None = None
    repeats: int = 3
    budget_s: float | None = None


def asked_search(profile: Profile, wish: Wish) -> Search:
    """The search that the options and the profile make; UsageError when it could not find anything."""
    by = wish.by or counted(profile.workload.load) or "concurrency"
    found = Search(
        by=by,
        lowest=wish.lowest if wish.lowest is not None else _lowest(profile, by),
        highest=wish.highest if wish.highest is not None else max(HIGHEST, wish.lowest or 0),
        repeats=wish.repeats,
        most_repeats=MORE_REPEATS * wish.repeats,
        budget_s=wish.budget_s,
    )
    _check_range(found)
    _check_gates(profile)
    _check_samples(profile, found)
    _check_lengths(profile)
    return found


def _lowest(profile: Profile, by: By) -> float:
    """The lowest load of the profile's sweep, else 1."""
    load = profile.workload.load
    return min(sweep(load) or (1.0,)) if counted(load) == by else 1.0


def _check_range(found: Search) -> None:
    whole = all(end.is_integer() for end in (found.lowest, found.highest))
    if found.lowest <= 0 or found.highest < found.lowest:
        raise UsageError(
            f"There is no load from {found.lowest:g} to {found.highest:g}.",
            fix="Give --from a number above 0, and --to one that is not less.",
        )
    if found.by == "concurrency" and not whole:
        raise UsageError("A concurrency is a whole number.", fix="Give whole numbers, or search --by rate.")


def _check_gates(profile: Profile) -> None:
    if not bounds(profile.gates):
        raise UsageError(
            "The profile has no gate that a load could miss, so any load would be within them.",
            why=f"[gates] sets none of {', '.join(BOUNDS)}.",
            fix="Add one to [gates], such as max_ttft_ms = { p95 = 500 }.",
        )


def _check_samples(profile: Profile, found: Search) -> None:
    samples = profile.workload.requests * found.repeats
    for asked in bounds(profile.gates):
        statistic = asked.metric.partition(".")[2]
        if samples < samples_needed(statistic):
            least = requests_needed(statistic, found.repeats)
            raise UsageError(
                f"A point gets {samples} samples, and {asked.metric} of [gates] needs {samples_needed(statistic)}.",
                fix=f"Set workload.requests to at least {least}, or give more --repeats.",
            )


def _check_lengths(profile: Profile) -> None:
    if profile.workload.prompt_tokens is None and profile.workload.dataset is None:
        raise UsageError(
            "The prompts' lengths come from the trace of workload.load, which a search replaces.",
            fix="Set workload.prompt_tokens, or workload.dataset.",
        )


def searched_load(load: Load, by: By, places: tuple[float, ...]) -> Load:
    """The profile's load at these concurrencies or rates; Poisson arrivals where it has no rate of its own."""
    if by == "concurrency":
        users = tuple(int(place) for place in places)
        return replace(load, concurrency=users) if isinstance(load, Closed) else Closed(concurrency=users)
    return replace(load, rate=places) if isinstance(load, Constant | Poisson | Gamma) else Poisson(rate=places)


def launch_profile(profile: Profile) -> Profile:
    """The profile as its engines are launched: as `run` would, with slots for the most users it asks for.

    One repeat: its prompts show whether the engine counts them as expected, the search makes its own.
    """
    workload, most = profile.workload, most_users(profile.workload.load)
    load = workload.load
    if isinstance(load, Closed) and most is not None:
        load = replace(load, concurrency=most)
    elif isinstance(load, Constant | Poisson | Gamma):
        load = replace(load, rate=max(sweep(load) or (1.0,)) if isinstance(load.rate, tuple) else load.rate)
    return replace(profile, workload=replace(workload, load=load, decide_at=None, repeats=1))
