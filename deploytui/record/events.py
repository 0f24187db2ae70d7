"""The words of the journal: each line of `journal.jsonl` is one of these events.

Every event has `at_ns`, the monotonic clock of the runner's host; stamps of two runner starts are only comparable
through the `SessionStarted` anchor before them.
"""

from typing import Literal

import msgspec

from deploytui.record.capacity import Capacity, Search
from deploytui.record.engine_events import ArtifactRead, EngineRead, FitRead, Freed, PreparationDone, RecoveryDone
from deploytui.record.event import Event, Evidence
from deploytui.record.facts import (
    Band,
    ColdStart,
    DeviceSample,
    Environment,
    Failure,
    MemoryUse,
    Sidecar,
)
from deploytui.record.finite import refuse_non_finite
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics, Quality, TaskScore
from deploytui.record.planned import PlannedCandidate, PlannedPoint, PlannedStep
from deploytui.record.verdict import Decision
from deploytui.record.words import Phase, Run, Status


class SessionStarted(Event, frozen=True, tag="session_started", kw_only=True):
    """A runner took the session; also the anchor of all stamps up to the next one."""

    session: str
    name: str
    schema: int
    tool_version: str
    definitions: int
    wall_s: float
    boot_id: str | None
    hostname: str
    pid: int
    base_dir: str
    profile_sha256: str
    baseline: str | None
    simulated: bool = False


class Planned(Event, frozen=True, tag="planned", kw_only=True):
    """What this session will do; said again when a search adds points and steps."""

    candidates: tuple[PlannedCandidate, ...]
    steps: tuple[PlannedStep, ...]
    workload_key: str
    """Of the point that is decided on."""
    points: tuple[PlannedPoint, ...] = ()
    decided_point: int | None = 0
    """The number of the point that the gates decide at; None when none is named."""
    search: Search | None = None
    """What is searched for, where the session is about capacity."""


class EnvironmentRead(Event, frozen=True, tag="environment", kw_only=True):
    """The node, as found."""

    environment: Environment


class PromptsMade(Event, frozen=True, tag="prompts_made", kw_only=True):
    """The session's prompts are on disk; every candidate gets these bytes."""

    draw: str
    files: tuple[Sidecar, ...]
    tokenizer_of: str | None
    target_tokens: int | None
    overhead_tokens: int | None
    """Tokens the chat template adds, which all prompts share; None when not known."""
    exact: bool
    """Whether each prompt was checked to have the asked number of tokens."""


class PhaseStarted(Event, frozen=True, tag="phase_started", kw_only=True):
    """A candidate entered a phase, which ends the one before."""

    candidate: str
    launch: int = 0
    phase: Phase


class PhaseEnded(Event, frozen=True, tag="phase_ended", kw_only=True):
    """A phase is over, with what shows it."""

    candidate: str
    launch: int = 0
    phase: Phase
    seconds: float
    evidence: Evidence = {}


class Progress(Event, frozen=True, tag="progress", kw_only=True):
    """How far the present phase is; `total` None when nobody knows. `text` is the engine's last line, perhaps."""

    candidate: str
    done: float
    total: float | None = None
    unit: str = ""
    text: str = ""


class StatusSet(Event, frozen=True, tag="status", kw_only=True):
    """About loading; set once."""

    candidate: str
    status: Status
    failure: Failure | None = None


class Rollup(Event, frozen=True, tag="rollup", kw_only=True):
    """One running candidate over one interval, at most one a second."""

    candidate: str
    interval_s: float
    output_tok_s: Band | None = None
    in_flight: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    gpu_bytes: Band | None = None
    """The worst device above the reading before launch."""
    host_bytes: Band | None = None
    """Resident memory of the engine's process tree."""
    done: int | None = None
    failed: int | None = None
    total: int | None = None
    ttft_s: float | None = None
    """Mean TTFT of the requests finished in the interval [s]."""
    tpot_s: float | None = None


class NodeRollup(Event, frozen=True, tag="node", kw_only=True):
    """The node over one interval, at most one a second."""

    interval_s: float
    devices: tuple[DeviceSample, ...] = ()
    host_used_bytes: int | None = None
    host_total_bytes: int | None = None
    cpu_percent: float | None = None


class RepeatDone(Event, frozen=True, tag="repeat_done", kw_only=True):
    """The repeat of `step` is on disk: its sidecars are synced."""

    step: StepKey
    metrics: Metrics
    sidecars: tuple[Sidecar, ...]


class TaskDone(Event, frozen=True, tag="task_done", kw_only=True):
    """A quality task was asked and scored."""

    step: StepKey
    score: TaskScore
    sidecars: tuple[Sidecar, ...]


class Measured(Event, frozen=True, tag="measured", kw_only=True):
    """All repeats of a candidate at one point, pooled."""

    candidate: str
    point: int = 0
    metrics: Metrics


class CapacityFound(Event, frozen=True, tag="capacity", kw_only=True):
    """A search for a candidate's capacity is over."""

    candidate: str
    point: int | None
    """Where it was found, else the lowest that was measured; None when nothing was."""
    capacity: Capacity


class Summed(Event, frozen=True, tag="summed", kw_only=True):
    """A candidate's launch is over: memory, start and quality as a whole."""

    candidate: str
    launch: int = 0
    memory: MemoryUse
    cold_start: ColdStart
    quality: Quality | None = None


class RunSet(Event, frozen=True, tag="run", kw_only=True):
    """About measuring; set once per launch."""

    candidate: str
    run: Run
    failure: Failure | None = None
    oom: bool = False


class Decided(Event, frozen=True, tag="decided", kw_only=True):
    """The decision so far, or the final one."""

    decision: Decision


class Note(Event, frozen=True, tag="note", kw_only=True):
    """Something a reader of the session should know."""

    level: Literal["info", "warning", "error"]
    text: str
    candidate: str | None = None


class Asked(Event, frozen=True, tag="asked", kw_only=True):
    """A user's word over the control socket."""

    word: Literal["skip", "cancel", "pause", "go_on"]
    candidate: str | None = None


class SessionEnded(Event, frozen=True, tag="session_ended", kw_only=True):
    """The runner is through; `exit_status` as the command returns it."""

    exit_status: int
    why: str = ""


AnyEvent = (
    SessionStarted
    | Planned
    | EnvironmentRead
    | PromptsMade
    | PhaseStarted
    | PhaseEnded
    | Progress
    | ArtifactRead
    | EngineRead
    | FitRead
    | PreparationDone
    | RecoveryDone
    | StatusSet
    | Rollup
    | NodeRollup
    | RepeatDone
    | TaskDone
    | Measured
    | CapacityFound
    | Summed
    | RunSet
    | Freed
    | Decided
    | Note
    | Asked
    | SessionEnded
)

decoder = msgspec.json.Decoder(AnyEvent)
_encoder = msgspec.json.Encoder()


def encode(event: AnyEvent) -> bytes:
    """The event as one line with its newline; refuses NaN and infinity with ValueError."""
    refuse_non_finite(msgspec.to_builtins(event))
    return _encoder.encode(event) + b"\n"
