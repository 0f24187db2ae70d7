"""One candidate as the decision sees it: what was asked, what was found, at the point that is decided on."""

from msgspec import Struct

from deploytui.compare.comparable import asked
from deploytui.profile.load_schema import Closed
from deploytui.profile.rules import sweep
from deploytui.profile.schema import Candidate, Profile, Workload
from deploytui.record.measured import Metrics
from deploytui.record.state import CandidateState, SessionState


class Subject(Struct, frozen=True, kw_only=True):
    """Everything a judgement on one candidate may rest on."""

    profile: Profile
    state: SessionState
    asked: Candidate
    seen: CandidateState
    point: int | None
    """Of the sweep; None when `decide_at` names none."""

    @property
    def name(self) -> str:
        """The candidate's name."""
        return self.seen.name

    @property
    def metrics(self) -> Metrics | None:
        """Pooled over the repeats; None when nothing was measured at the point."""
        return None if self.point is None else self.seen.measured.get(self.point)

    @property
    def repeats(self) -> tuple[Metrics, ...]:
        """Of each finished repeat at the point."""
        return tuple(record.metrics for record in self.seen.repeats if record.step.point == self.point)

    @property
    def baseline(self) -> CandidateState | None:
        """The baseline's state; None when there is no baseline."""
        return self.state.candidates.get(baseline_name(self.profile, self.state) or "")


def subject(profile: Profile, state: SessionState, name: str) -> Subject:
    """The candidate `name` of a session."""
    seen = state.candidates[name]
    wanted = asked(profile, name) or Candidate(name=name, engine=seen.engine_name)
    return Subject(profile=profile, state=state, asked=wanted, seen=seen, point=decided_point(profile.workload))


def decided_point(workload: Workload) -> int | None:
    """The number of the place in a sweep that is decided on, 0 without a sweep; None when no place is named."""
    places = sweep(workload.load)
    if places is None:
        return 0
    if workload.decide_at is None:
        return 0 if len(places) == 1 else None
    return next((place for place, value in enumerate(places) if value == workload.decide_at), None)


def decided_concurrency(workload: Workload) -> int | None:
    """How many requests the load keeps in flight where it is decided on; None for open loops."""
    if not isinstance(workload.load, Closed):
        return None
    places, point = sweep(workload.load), decided_point(workload)
    if places is not None:
        return int(max(places) if point is None else places[point])
    return workload.load.concurrency if isinstance(workload.load.concurrency, int) else None


def baseline_name(profile: Profile, state: SessionState) -> str | None:
    """The baseline as the profile, or else the session's start, names it."""
    return profile.baseline or (state.started.baseline if state.started else None)
