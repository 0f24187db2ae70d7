"""Events in, state out. The screen, plain progress, resume, export and the decision all see this fold."""

from collections.abc import Iterable
from functools import reduce
from typing import Any, assert_never

from msgspec.structs import replace

from deploytui.record.engine_events import ArtifactRead, EngineRead, FitRead, Freed, PreparationDone, RecoveryDone
from deploytui.record.events import (
    AnyEvent,
    Asked,
    CapacityFound,
    Decided,
    EnvironmentRead,
    Measured,
    NodeRollup,
    Note,
    PhaseEnded,
    PhaseStarted,
    Planned,
    Progress,
    PromptsMade,
    RepeatDone,
    Rollup,
    RunSet,
    SessionEnded,
    SessionStarted,
    StatusSet,
    Summed,
    TaskDone,
)
from deploytui.record.facts import Band
from deploytui.record.series import Point, Series, append
from deploytui.record.state import CandidateState, PhaseRecord, RepeatRecord, SessionState, TaskRecord

NOTES_KEPT = 200


def fold_all(events: Iterable[AnyEvent], state: SessionState | None = None) -> SessionState:
    """The state after all events."""
    return reduce(fold, events, state or SessionState())


def fold(state: SessionState, event: AnyEvent) -> SessionState:
    """The state after `event`; an event about an unknown candidate changes nothing but the time."""
    return replace(_folded(state, event), at_ns=event.at_ns)


def _folded(state: SessionState, event: AnyEvent) -> SessionState:
    match event:
        case SessionStarted():
            return replace(state, started=event, first_started=state.first_started or event, ended=None, paused=False)
        case Planned():
            return _planned(state, event)
        case EnvironmentRead(environment=environment):
            return replace(state, environment=environment)
        case PromptsMade():
            return replace(state, prompts=event)
        case NodeRollup():
            return _node(state, event)
        case Decided(decision=decision):
            return replace(state, decision=decision)
        case Note(level=level, text=text):
            return replace(state, notes=(*state.notes, f"{level}: {text}")[-NOTES_KEPT:])
        case Asked(word=word):
            return replace(state, paused=word == "pause" if word in ("pause", "go_on") else state.paused)
        case SessionEnded():
            return replace(state, ended=event)
        case RepeatDone(step=step) | TaskDone(step=step):
            return _with(state, step.candidate, event)
        case _:
            return _with(state, event.candidate, event)


CandidateEvent = (
    PhaseStarted
    | PhaseEnded
    | Progress
    | ArtifactRead
    | EngineRead
    | FitRead
    | PreparationDone
    | RecoveryDone
    | StatusSet
    | Rollup
    | RepeatDone
    | TaskDone
    | Measured
    | CapacityFound
    | Summed
    | RunSet
    | Freed
)


def _with(state: SessionState, name: str, event: CandidateEvent) -> SessionState:
    candidate = state.candidates.get(name)
    if candidate is None:
        return state
    return replace(state, candidates={**state.candidates, name: replace(candidate, **_change(candidate, event))})


def _change(candidate: CandidateState, event: CandidateEvent) -> dict[str, Any]:
    """The fields of a candidate that `event` changes."""
    match event:
        case PhaseStarted(phase=phase, at_ns=at_ns):
            return {"phase": phase, "phase_since_ns": at_ns, "progress": None}
        case PhaseEnded():
            return {"phases": (*candidate.phases, _phase(event))}
        case Progress():
            return {"progress": event}
        case ArtifactRead(artifact=artifact):
            return {"artifact": artifact}
        case EngineRead(engine=engine):
            return {"engine": engine}
        case FitRead(fit=fit):
            return {"fit": fit}
        case PreparationDone(preparation=made):
            return {"preparations": (*(kept for kept in candidate.preparations if kept.key != made.key), made)}
        case RecoveryDone(checks=checks):
            return {"recovery": checks}
        case StatusSet(status=status, failure=failure):
            return {"status": status, "failure": failure or candidate.failure}
        case Rollup():
            return _rolled(candidate, event)
        case RepeatDone(step=step, metrics=metrics, sidecars=files):
            done = RepeatRecord(step=step, metrics=metrics, sidecars=files)
            return {"repeats": (*(kept for kept in candidate.repeats if kept.step != step), done)}
        case TaskDone(step=step, score=score, sidecars=files):
            task = TaskRecord(step=step, score=score, sidecars=files)
            return {"tasks": (*(kept for kept in candidate.tasks if kept.step != step), task)}
        case Measured(point=point, metrics=metrics):
            return {"measured": {**candidate.measured, point: metrics}}
        case CapacityFound(point=point, capacity=capacity):
            return {"capacity": capacity, "point": point}
        case Summed(memory=memory, cold_start=cold_start, quality=quality):
            return {"memory": memory, "cold_start": cold_start, "quality": quality or candidate.quality}
        case RunSet(run=run, failure=failure, oom=oom):
            return {"run": run, "failure": failure or candidate.failure, "oom": oom or candidate.oom}
        case Freed():
            return {"freed": event}
        case _:
            assert_never(event)


def _planned(state: SessionState, event: Planned) -> SessionState:
    rows = {
        row.name: state.candidates.get(row.name)
        or CandidateState(
            name=row.name,
            engine_name=row.engine,
            artifact_label=row.artifact,
            differs=row.differs,
            factors=row.factors,
            point=event.decided_point,
        )
        for row in event.candidates
    }
    return replace(
        state,
        candidates=rows,
        steps=event.steps,
        workload_key=event.workload_key,
        points=event.points,
        search=event.search,
    )


def _phase(event: PhaseEnded) -> PhaseRecord:
    return PhaseRecord(launch=event.launch, phase=event.phase, seconds=event.seconds, evidence=event.evidence)


def _rolled(candidate: CandidateState, event: Rollup) -> dict[str, Any]:
    return {
        "live": event,
        "tokens": _longer(candidate.tokens, event.at_ns, event.output_tok_s),
        "gpu": _longer(candidate.gpu, event.at_ns, event.gpu_bytes),
        "host": _longer(candidate.host, event.at_ns, event.host_bytes),
    }


def _longer(series: Series, at_ns: int, band: Band | None) -> Series:
    return series if band is None else append(series, Point(at_ns, band.min, band.max, band.last))


def _node(state: SessionState, event: NodeRollup) -> SessionState:
    used, busy = dict(state.gpu_used), dict(state.gpu_utilisation)
    for device in event.devices:
        used[device.uuid] = _longer(used.get(device.uuid, Series()), event.at_ns, device.used_bytes)
        busy[device.uuid] = _longer(busy.get(device.uuid, Series()), event.at_ns, device.utilisation)
    return replace(state, node=event, gpu_used=used, gpu_utilisation=busy)
