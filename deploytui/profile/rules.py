"""What the schema's types can't say: keys that must fit each other."""

from collections.abc import Iterator, Sequence

import msgspec

from deploytui.profile.api_rules import api_faults
from deploytui.profile.candidate_rules import candidate_faults
from deploytui.profile.faults import Fault, shown
from deploytui.profile.load_schema import Closed, Constant, Gamma, Load, Poisson
from deploytui.profile.nearest import did_you_mean
from deploytui.profile.schema import Gates, Limits, Profile, Workload
from deploytui.profile.secret_rules import secret_faults
from deploytui.profile.workload_rules import workload_faults

PLAIN_OBJECTIVES = ("output_tok_s", "request_s", "goodput", "cost_per_mtok", "peak_gpu_gib", "peak_host_gib")
LATENCIES = ("ttft_ms", "tpot_ms", "e2e_ms")
STATISTICS = tuple(field.name for field in msgspec.structs.fields(Limits))
OBJECTIVES = PLAIN_OBJECTIVES + tuple(f"{latency}.{statistic}" for latency in LATENCIES for statistic in STATISTICS)
"""Every value `objective` may have."""

GATE_NAMES = tuple(field.name for field in msgspec.structs.fields(Gates) if field.name != "confirm")
"""Every gate by its key."""

LONGEST_NAME = 100
"""Bytes of a candidate's name: it becomes part of file names."""


def rule_faults(profile: Profile) -> tuple[Fault, ...]:
    """All faults of a profile whose types are right."""
    return (
        *_name_faults(profile),
        *candidate_faults(profile),
        *_baseline_faults(profile),
        *_objective_faults(profile),
        *workload_faults(profile.workload),
        *_sweep_faults(profile.workload),
        *_gate_faults(profile.gates),
        *_repeated(profile.quality.tasks, "quality.tasks", "task"),
        *api_faults(profile),
        *secret_faults(profile),
    )


def sweep(load: Load) -> tuple[float, ...] | None:
    """The places of a sweep in its order; None when the load is a single one."""
    match load:
        case Closed(concurrency=tuple() as places):
            return tuple(float(place) for place in places)
        case Constant(rate=tuple() as rates) | Poisson(rate=tuple() as rates) | Gamma(rate=tuple() as rates):
            return rates
        case _:
            return None


def _name_faults(profile: Profile) -> Iterator[Fault]:
    names = [candidate.name for candidate in profile.candidates]
    yield from _repeated(names, "candidates", "name")
    for index, name in enumerate(names):
        if "/" in name or "\\" in name or not name.isprintable() or name.strip(" .") != name:
            yield Fault(
                f"candidates[{index}].name",
                f"can't be {shown(name)}: it becomes part of file names",
                "Leave out slashes and control characters, and dots and blanks at the ends.",
            )
        elif len(name.encode()) > LONGEST_NAME:
            yield Fault(f"candidates[{index}].name", f"is longer than {LONGEST_NAME} bytes", "Shorten it.")


def _repeated(words: Sequence[str], path: str, what: str) -> Iterator[Fault]:
    for word in dict.fromkeys(word for word in words if words.count(word) > 1):
        yield Fault(path, f'has the {what} "{word}" more than once', f"Give each {what} once.")


def _baseline_faults(profile: Profile) -> Iterator[Fault]:
    names = [candidate.name for candidate in profile.candidates]
    if profile.baseline is not None and profile.baseline not in names:
        yield Fault("baseline", f"names no candidate: {shown(profile.baseline)}", did_you_mean(profile.baseline, names))


def _objective_faults(profile: Profile) -> Iterator[Fault]:
    said = profile.objective
    if said in LATENCIES:
        yield Fault("objective", f"needs a statistic: {shown(said)}", f'Write "{said}.p95", for one.')
    elif said is not None and said not in OBJECTIVES:
        yield Fault("objective", f"can't be {shown(said)}", did_you_mean(said, OBJECTIVES))


def _sweep_faults(workload: Workload) -> Iterator[Fault]:
    places, chosen = sweep(workload.load), workload.decide_at
    if places is None:
        if chosen is not None and chosen != getattr(workload.load, "concurrency", getattr(workload.load, "rate", None)):
            yield Fault("workload.decide_at", "goes with a list of loads only", "Leave decide_at out.")
        return
    listed = ", ".join(f"{place:g}" for place in places)
    key = "concurrency" if isinstance(workload.load, Closed) else "rate"
    if not places:
        yield Fault(f"workload.load.{key}", "is an empty list", f"Write one {key}, or some.")
    elif len(set(places)) < len(places):
        yield Fault(f"workload.load.{key}", "has the same number more than once", "Give each number once.")
    elif chosen is None:
        fix = f"Add the {key} that the decision is about, one of {listed}."
        yield Fault("workload.decide_at", f"is missing: load.{key} is a list", fix)
    elif chosen not in places:
        yield Fault("workload.decide_at", f"is none of the loads: {shown(chosen)}", f"Choose one of {listed}.")


def _gate_faults(gates: Gates) -> Iterator[Fault]:
    for name in gates.confirm:
        if name not in GATE_NAMES:
            yield Fault(f"gates.confirm.{name}", "is not a gate", did_you_mean(name, GATE_NAMES))
