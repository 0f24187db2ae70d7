"""The state of a session: what the fold of its events gives."""

from msgspec import Struct

from deploytui.record.capacity import Capacity, Search
from deploytui.record.engine_events import Freed
from deploytui.record.event import Evidence
from deploytui.record.events import NodeRollup, Progress, PromptsMade, Rollup, SessionEnded, SessionStarted
from deploytui.record.facts import (
    Artifact,
    ColdStart,
    EngineFacts,
    Environment,
    Failure,
    Fit,
    MemoryUse,
    Preparation,
    RecoveryCheck,
    Sidecar,
)
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics, Quality, TaskScore
from deploytui.record.planned import PlannedPoint, PlannedStep
from deploytui.record.series import Series
from deploytui.record.verdict import Decision, Verdict
from deploytui.record.words import Phase, Run, Status


class PhaseRecord(Struct, frozen=True, kw_only=True):
    """A finished phase."""

    launch: int
    phase: Phase
    seconds: float
    evidence: Evidence


class RepeatRecord(Struct, frozen=True, kw_only=True):
    """A finished repeat."""

    step: StepKey
    metrics: Metrics
    sidecars: tuple[Sidecar, ...]


class TaskRecord(Struct, frozen=True, kw_only=True):
    """A finished quality task."""

    step: StepKey
    score: TaskScore
    sidecars: tuple[Sidecar, ...]


class CandidateState(Struct, frozen=True, kw_only=True):
    """Everything known of one candidate."""

    name: str
    engine_name: str
    artifact_label: str
    differs: dict[str, str] = {}
    factors: tuple[str, ...] = ()
    phase: Phase = "queued"
    phase_since_ns: int | None = None
    phases: tuple[PhaseRecord, ...] = ()
    progress: Progress | None = None
    artifact: Artifact | None = None
    engine: EngineFacts | None = None
    fit: Fit | None = None
    preparations: tuple[Preparation, ...] = ()
    recovery: tuple[RecoveryCheck, ...] = ()
    status: Status | None = None
    run: Run | None = None
    failure: Failure | None = None
    oom: bool = False
    live: Rollup | None = None
    """The newest rollup; None before the first."""
    tokens: Series = Series()
    """Output tokens per second."""
    gpu: Series = Series()
    """Bytes above the reading before launch, worst device."""
    host: Series = Series()
    """Resident bytes of the engine's process tree."""
    repeats: tuple[RepeatRecord, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()
    measured: dict[int, Metrics] = {}
    """Pooled metrics by point of the sweep."""
    point: int | None = 0
    """The point that is decided on; None when none is named."""
    capacity: Capacity | None = None
    memory: MemoryUse | None = None
    cold_start: ColdStart | None = None
    quality: Quality | None = None
    freed: Freed | None = None

    @property
    def metrics(self) -> Metrics | None:
        """The pooled metrics at the point that is decided on; None before they are known."""
        return None if self.point is None else self.measured.get(self.point)

    @property
    def simulated(self) -> bool:
        """Whether its numbers come from a simulated engine."""
        return self.engine_name == "mock" or (self.engine is not None and self.engine.simulated)


class SessionState(Struct, frozen=True, kw_only=True):
    """Everything known of a session; empty before its first event."""

    started: SessionStarted | None = None
    first_started: SessionStarted | None = None
    environment: Environment | None = None
    workload_key: str | None = None
    steps: tuple[PlannedStep, ...] = ()
    points: tuple[PlannedPoint, ...] = ()
    search: Search | None = None
    """What is searched for, where the session is about capacity."""
    prompts: PromptsMade | None = None
    candidates: dict[str, CandidateState] = {}
    node: NodeRollup | None = None
    gpu_used: dict[str, Series] = {}
    gpu_utilisation: dict[str, Series] = {}
    decision: Decision | None = None
    notes: tuple[str, ...] = ()
    paused: bool = False
    ended: SessionEnded | None = None
    at_ns: int | None = None
    """Of the newest event."""

    @property
    def finished_steps(self) -> frozenset[StepKey]:
        """Keys of the repeats and tasks that are safe on disk."""
        rows = self.candidates.values()
        repeats = {record.step for row in rows for record in row.repeats}
        return frozenset(repeats | {record.step for row in rows for record in row.tasks})

    @property
    def simulated(self) -> bool:
        """Whether any candidate's numbers are simulated."""
        return any(candidate.simulated for candidate in self.candidates.values())

    def verdict(self, name: str) -> Verdict | None:
        """The verdict on a candidate so far; None before there is one."""
        verdicts = self.decision.verdicts if self.decision else ()
        return next((verdict for verdict in verdicts if verdict.candidate == name), None)
