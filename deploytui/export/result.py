"""The result of a session as JSON, schema `deploytui.result/1`: what scripts and reports read."""

import json
from datetime import UTC, datetime
from typing import Any

from deploytui.definitions import DEFINITIONS_VERSION, TEXTS
from deploytui.errors import SessionError
from deploytui.export.curve import capacity_result, planned_result, points_result, search_result
from deploytui.export.facts import artifact_facts, before_launch, engine_facts, every_field, model_facts, runtime_facts
from deploytui.export.metrics import all_metrics, cold_start, load_metrics, missing_reasons
from deploytui.export.plain import plain
from deploytui.export.tool_error import tool_error
from deploytui.profile.parse import parse_profile
from deploytui.profile.schema import Candidate, Profile
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision
from deploytui.session.folder import SessionFolder
from deploytui.session.tail import load_state

SCHEMA = "deploytui.result/1"
STAMP = "SIMULATED"
NO_DECISION: dict[str, Any] = {
    "decision": None,
    "title": "",
    "final": False,
    "accepted": [],
    "winner": None,
    "recommended": None,
    "objective": None,
    "tie": [],
    "reasons": [],
    "not_covered": [],
    "fallback": None,
    "simulated": False,
}


def session_parts(folder: SessionFolder) -> tuple[Profile, SessionState, int]:
    """A session's profile and state, and how many journal lines were no event; SessionError when it can't be read."""
    try:
        text = folder.profile.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SessionError(f"The session {folder.id} has no profile that can be read.", why=str(error)) from error
    state, reader = load_state(folder.journal)
    return parse_profile(text, str(folder.profile)), state, reader.unreadable


def json_bytes(data: dict[str, Any]) -> bytes:
    """Plain data as strict JSON, indented, with a newline at its end; ValueError for NaN and infinity."""
    return json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False).encode("utf-8") + b"\n"


def result(
    profile: Profile, state: SessionState, *, session_id: str | None = None, unreadable_lines: int = 0
) -> dict[str, Any]:
    """Everything measured, missing and decided, with units in the names; all keys are there whatever happened."""
    asked = {candidate.name: candidate for candidate in profile.candidates}
    return {
        "schema": SCHEMA,
        "simulated": state.simulated,
        "stamp": STAMP if state.simulated else None,
        "session": _session(profile, state, session_id, unreadable_lines),
        "environment": _environment(state),
        "workload": _workload(profile, state),
        "gates": plain(profile.gates),
        "definitions": dict(TEXTS),
        "candidates": [candidate_result(asked.get(row.name), row, state) for row in rows(profile, state)],
        "decision": decision_result(state.decision),
    }


def rows(profile: Profile, state: SessionState) -> list[CandidateState]:
    """The candidates of the session in its order; those of the profile when it was not planned yet."""
    if state.candidates:
        return list(state.candidates.values())
    return [
        CandidateState(name=one.name, engine_name=one.engine, artifact_label=one.format or "")
        for one in profile.candidates
    ]


def candidate_result(asked: Candidate | None, row: CandidateState, state: SessionState) -> dict[str, Any]:
    """One candidate; `missing` names each number that is null, `missing_reasons` says why."""
    numbers = plain(all_metrics(row))
    reasons = missing_reasons(row, state, numbers)
    data = {
        "name": row.name,
        "engine": engine_facts(asked, row),
        "model": model_facts(asked, row),
        "artifact": artifact_facts(row),
        "runtime": runtime_facts(asked, row),
        "differs": row.differs,
        "factors": row.factors,
        "status": row.status,
        "run": row.run,
        "phase": row.phase,
        "simulated": row.simulated,
        "oom": row.oom,
        "failure": row.failure,
        "kv_cache": row.engine.kv_cache if row.engine else {},
        "cold_start": cold_start(row.cold_start),
        "phases_s": _phases(row),
        "memory_source": row.memory.source if row.memory else None,
        "metrics": numbers,
        "points": points_result(row, state),
        "capacity": capacity_result(row.capacity),
        "repeats": [_repeat(record) for record in row.repeats],
        "missing": list(reasons),
        "missing_reasons": reasons,
        "tool_error": tool_error(row.metrics),
        **before_launch(row),
        "survivors": row.freed.survivors if row.freed else [],
        "survivor_names": row.freed.survivor_names if row.freed else [],
        "verdict": _verdict(row, state),
    }
    cleaned: dict[str, Any] = plain(data)
    return cleaned


def decision_result(decision: Decision | None) -> dict[str, Any]:
    """The decision on the session without the verdicts, which stand with their candidates."""
    data: dict[str, Any] = plain(decision) if decision else dict(NO_DECISION)
    data.pop("verdicts", None)
    return data


def _session(profile: Profile, state: SessionState, session_id: str | None, unreadable: int) -> dict[str, Any]:
    first, ended = state.first_started, state.ended
    known = {candidate.name for candidate in rows(profile, state)}
    data: dict[str, Any] = plain(
        {
            "id": session_id or (first.session if first else None),
            "name": profile.name,
            "tool_version": first.tool_version if first else None,
            "definitions_version": first.definitions if first else DEFINITIONS_VERSION,
            "hostname": first.hostname if first else None,
            "boot_id": first.boot_id if first else None,
            "started_wall_s": first.wall_s if first else None,
            "started": _utc(first.wall_s) if first else None,
            "profile_sha256": first.profile_sha256 if first else None,
            "baseline": state.started.baseline if state.started else profile.baseline,
            "form": profile.form,
            "objective": profile.objective,
            "finished": ended is not None,
            "exit_status": ended.exit_status if ended else None,
            "exit_why": ended.why if ended else "",
            "left_out": [one.name for one in profile.candidates if one.name not in known],
            "notes": state.notes,
            "unreadable_lines": unreadable,
        }
    )
    return data


def _utc(wall_s: float) -> str | None:
    try:
        return datetime.fromtimestamp(wall_s, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def _environment(state: SessionState) -> dict[str, Any]:
    found = state.environment
    if found is None:
        return {"host": {}, "gpus": [], "driver": None, "cuda": None, "gpu_missing": None, "label": None}
    return {**plain(found), "label": found.label}


def _workload(profile: Profile, state: SessionState) -> dict[str, Any]:
    prompts = state.prompts
    warmups = [phase.seconds for row in state.candidates.values() for phase in row.phases if phase.phase == "warming"]
    data: dict[str, Any] = plain(
        {
            "key": state.workload_key,
            "points": planned_result(state.points),
            "search": search_result(state.search),
            "draw": prompts.draw if prompts else None,
            "warmup_requests": profile.workload.warmup_requests,
            "warmup_s": max(warmups, default=None),
            "tokenizer_of": prompts.tokenizer_of if prompts else None,
            "prompts_exact": prompts.exact if prompts else None,
            "overhead_tokens": prompts.overhead_tokens if prompts else None,
            "asked": every_field(profile.workload),
            "quality_tasks": profile.quality.tasks,
            "quality_max_tokens": profile.quality.max_tokens,
        }
    )
    return data


def _phases(row: CandidateState) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for phase in row.phases:
        seconds[phase.phase] = seconds.get(phase.phase, 0.0) + phase.seconds
    return seconds


def _repeat(record: Any) -> dict[str, Any]:
    key = record.step
    return {
        "launch": key.launch,
        "point": key.point,
        "repeat": key.repeat,
        "metrics": load_metrics(record.metrics),
        "tool_error": tool_error(record.metrics),
        "sidecars": record.sidecars,
    }


def _verdict(row: CandidateState, state: SessionState) -> dict[str, Any]:
    verdict = state.verdict(row.name)
    if verdict is None:
        return {"decision": None, "comparable": None, "reasons": [], "notes": [], "held": []}
    data: dict[str, Any] = plain(verdict)
    data.pop("candidate")
    return data
