"""A session as one profile that opens anywhere: what was asked, with results, decision and environment in it."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from deploytui.errors import UsageError
from deploytui.export.metrics import all_metrics, missing_reasons
from deploytui.export.plain import plain, without_none
from deploytui.export.result import STAMP, rows, session_parts
from deploytui.profile.files import save_text
from deploytui.profile.schema import Profile
from deploytui.profile.write import profile_toml
from deploytui.record.series import Series, merged
from deploytui.record.state import CandidateState, SessionState
from deploytui.session.folder import SessionFolder
from deploytui.session.trust import fingerprint, programs, trust

MOST_POINTS = 600
"""Most points of a saved series."""

SERIES = ("tokens", "gpu", "host")
PASSING = ("live", "progress", "phase_since_ns", *SERIES)
"""Fields that are of no use after the moment, or saved in another shape."""


def save_session(folder: SessionFolder, path: Path, *, overwrite: bool = False) -> Path:
    """Write a session as a profile, whole or not at all; where it lies then. A folder gets a file named by the session.

    What it names ran here, so it need not be confirmed again.

    UsageError when the file exists, since it may be somebody's profile with its comments; DeployError when it can't be
    written.
    """
    target = path / f"{folder.id}.toml" if path.is_dir() else path
    if target.exists() and not overwrite:
        raise UsageError(f"{target} exists already.", fix="Choose another name; nothing was changed.")
    profile, state, unreadable_lines = session_parts(folder)
    text = saved_text(profile, state, unreadable_lines)
    save_text(target, text)
    if programs(profile):
        trust(folder.path.parent, fingerprint(text))
    return target.absolute()


def saved_text(profile: Profile, state: SessionState, unreadable_lines: int = 0) -> str:
    """The TOML of a saved session."""
    return profile_toml(saved_profile(profile, state, unreadable_lines))


def saved_profile(profile: Profile, state: SessionState, unreadable_lines: int = 0) -> Profile:
    """The profile with everything the state knows; what an earlier session had saved in it is gone."""
    return msgspec.structs.replace(
        profile,
        session=_session(state, unreadable_lines),
        environment=_toml(state.environment) if state.environment else UNSET,
        decision=_toml(state.decision) if state.decision else UNSET,
        results=tuple(_result(row, state) for row in rows(profile, state)),
    )


def series_table(series: Series) -> dict[str, list[Any]]:
    """A series as columns, at most 600 points: neighbours joined so that no peak is lost."""
    points = series.points()
    while len(points) > MOST_POINTS:
        points = merged(points)
    kept = [point for point in points if all(_finite(value) for value in (point.min, point.max, point.last))]
    return {name: [getattr(point, name) for point in kept] for name in ("at_ns", "min", "max", "last")}


def _session(state: SessionState, unreadable_lines: int) -> dict[str, Any]:
    first = state.first_started
    return _toml(
        {
            "id": first.session if first else None,
            "base_dir": first.base_dir if first else None,
            "workload_key": state.workload_key,
            "points": state.points,
            "search": state.search,
            "stamp": STAMP if state.simulated else None,
            "at_ns": state.at_ns,
            "first_started": first,
            "started": state.started,
            "ended": state.ended,
            "prompts": state.prompts,
            "node": state.node,
            "notes": state.notes,
            "unreadable_lines": unreadable_lines or None,
            "gpu_used": {uuid: series_table(series) for uuid, series in state.gpu_used.items()},
            "gpu_utilisation": {uuid: series_table(series) for uuid, series in state.gpu_utilisation.items()},
        }
    )


def _result(row: CandidateState, state: SessionState) -> dict[str, Any]:
    data = plain(row)
    for name in PASSING:
        data.pop(name)
    data["simulated"] = row.simulated
    data["missing"] = list(missing_reasons(row, state, all_metrics(row)))
    data["series"] = {name: series_table(getattr(row, name)) for name in SERIES}
    return _toml(data)


def _toml(value: Any) -> dict[str, Any]:
    table: dict[str, Any] = without_none(plain(value))
    return table


def _finite(value: float) -> bool:
    return value - value == 0.0
