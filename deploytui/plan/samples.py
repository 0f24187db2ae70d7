"""Whether the workload can give what the gates ask for, said before GPU time is spent."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from deploytui.definitions import requests_needed, samples_needed
from deploytui.plan.inputs import lengths_from_trace
from deploytui.plan.lengths import longest_possible
from deploytui.plan.loads import most_users
from deploytui.profile.schema import Limits, Profile

FEWEST_REPEATS = 3
"""With fewer, a session is a smoke test: no spread between repeats can be told."""

LATENCY_GATES = ("max_ttft_ms", "max_tpot_ms", "max_e2e_ms")


class SampleNeed(Struct, frozen=True, kw_only=True):
    """A percentile that a gate or the objective rests on, and what the workload gives it."""

    asked_by: str
    """As in a profile: `gates.max_ttft_ms.p95` or `objective`."""
    statistic: str
    samples: int
    """Requests of all repeats, if every one succeeds."""
    needed: int
    requests_needed: int
    """Per repeat."""

    @property
    def enough(self) -> bool:
        """Whether the percentile will be known."""
        return self.samples >= self.needed

    @property
    def text(self) -> str:
        """The need as a sentence."""
        if self.enough:
            return f"{self.asked_by}: {self.samples} samples, {self.statistic} needs {self.needed}."
        return (
            f"{self.asked_by}: {self.samples} samples are too few, {self.statistic} needs {self.needed}: "
            f"set workload.requests to at least {self.requests_needed}."
        )


class SampleFault(Struct, frozen=True, kw_only=True):
    """Why the evidence will be unfit: the reason's code as the decision will name it, and the sentence."""

    code: str
    text: str


def sample_needs(profile: Profile) -> tuple[SampleNeed, ...]:
    """Every percentile that decides something, with the samples it will have."""
    workload = profile.workload
    return tuple(
        SampleNeed(
            asked_by=asked_by,
            statistic=statistic,
            samples=workload.requests * workload.repeats,
            needed=samples_needed(statistic),
            requests_needed=requests_needed(statistic, workload.repeats),
        )
        for asked_by, statistic in _percentiles(profile)
    )


def sample_faults(profile: Profile) -> tuple[SampleFault, ...]:
    """What will make the session a smoke test or leave a gate without evidence; empty when nothing will."""
    few = [
        SampleFault(code="insufficient_samples", text=need.text) for need in sample_needs(profile) if not need.enough
    ]
    return (*few, *_smoke(profile), *_no_tpot(profile))


def most_in_flight(profile: Profile) -> int | None:
    """The largest concurrency of a closed load; None for a load that has none."""
    return most_users(profile.workload.load)


def _percentiles(profile: Profile) -> Iterator[tuple[str, str]]:
    for gate in LATENCY_GATES:
        limits: Limits | None = getattr(profile.gates, gate)
        for statistic, limit in msgspec.structs.asdict(limits).items() if limits else ():
            if limit is not None and statistic.startswith("p"):
                yield f"gates.{gate}.{statistic}", statistic
    _, _, statistic = (profile.objective or "").partition(".")
    if statistic.startswith("p"):
        yield "objective", statistic


def _smoke(profile: Profile) -> Iterator[SampleFault]:
    workload, users = profile.workload, most_in_flight(profile)
    if workload.repeats < FEWEST_REPEATS:
        text = f"workload.repeats = {workload.repeats} is a smoke test: set it to at least {FEWEST_REPEATS}."
        yield SampleFault(code="smoke", text=text)
    if users is not None and workload.warmup_requests < users:
        text = (
            f"workload.warmup_requests = {workload.warmup_requests} is a smoke test: "
            f"set it to at least the concurrency, {users}."
        )
        yield SampleFault(code="smoke", text=text)


def _no_tpot(profile: Profile) -> Iterator[SampleFault]:
    asked = profile.gates.max_tpot_ms is not None or (profile.objective or "").startswith("tpot_ms")
    if asked and longest_possible(profile.workload.output_tokens) == 1 and not lengths_from_trace(profile.workload):
        text = "TPOT is asked for, but one output token has none: set workload.output_tokens to at least 2."
        yield SampleFault(code="missing_measurements", text=text)
