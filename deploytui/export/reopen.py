"""A saved session back as the state that the screen, the table and the result read. Pure."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, inspect

from deploytui.errors import ProfileError
from deploytui.export.saved import SERIES
from deploytui.profile.schema import Profile
from deploytui.record.capacity import Search
from deploytui.record.events import NodeRollup, PromptsMade, SessionEnded, SessionStarted
from deploytui.record.facts import Environment
from deploytui.record.planned import PlannedPoint
from deploytui.record.series import FINE, Point, Series
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision

Record = TypeVar("Record", bound=Struct)


def state_from_saved(profile: Profile) -> SessionState:
    """The state a profile was saved from, without what was passing; ProfileError when it holds none or does not fit."""
    if not profile.saved:
        raise ProfileError(f"Profile {profile.name!r} holds no results.", fix="Run it, or open a saved session.")
    session: Mapping[str, Any] = profile.session if isinstance(profile.session, dict) else {}
    candidates = [_candidate(row, index) for index, row in enumerate(profile.results)]
    return SessionState(
        started=_part(session, "started", SessionStarted),
        first_started=_part(session, "first_started", SessionStarted),
        ended=_part(session, "ended", SessionEnded),
        prompts=_part(session, "prompts", PromptsMade),
        node=_part(session, "node", NodeRollup),
        environment=_whole(profile.environment, "environment", Environment),
        decision=_whole(profile.decision, "decision", Decision),
        candidates={candidate.name: candidate for candidate in candidates},
        workload_key=_typed(session, "workload_key", str),
        points=_points_of(session),
        search=_part(session, "search", Search),
        at_ns=_typed(session, "at_ns", int),
        notes=tuple(str(note) for note in session.get("notes", ())),
        gpu_used=_many_series(session.get("gpu_used"), "session.gpu_used"),
        gpu_utilisation=_many_series(session.get("gpu_utilisation"), "session.gpu_utilisation"),
    )


def saved_unreadable(profile: Profile) -> int:
    """How many lines of the session's journal could not be read when it was saved."""
    session: Mapping[str, Any] = profile.session if isinstance(profile.session, dict) else {}
    return _typed(session, "unreadable_lines", int) or 0


def series_from(table: Any, where: str) -> Series:
    """The series in saved columns; ProfileError when they do not fit together."""
    try:
        columns = [table[name] for name in ("at_ns", "min", "max", "last")]
        points = tuple(msgspec.convert(row, Point) for row in _points(columns))
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise _broken(where, error) from error
    return Series(coarse=points[:-FINE], fine=points[-FINE:])


def filled(value: Any, kind: inspect.Type) -> Any:
    """Plain data with None put back where TOML had to leave it out and the type asks for a value."""
    match kind, value:
        case inspect.StructType(fields=fields), dict():
            return _filled_struct(value, fields)
        case inspect.DictType(value_type=inner), dict():
            return {key: filled(part, inner) for key, part in value.items()}
        case ((inspect.VarTupleType(item_type=inner) | inspect.ListType(item_type=inner)), list()):
            return [filled(part, inner) for part in value]
        case inspect.UnionType(types=types), "null" if kind.includes_none and not _takes_text(types):
            return None
        case inspect.UnionType(types=types), _:
            return filled(value, next(one for one in types if not isinstance(one, inspect.NoneType)))
        case _:
            return value


def _filled_struct(value: dict[str, Any], fields: tuple[inspect.Field, ...]) -> dict[str, Any]:
    whole = dict(value)
    for field in fields:
        if field.encode_name in value:
            whole[field.encode_name] = filled(value[field.encode_name], field.type)
        elif field.required and _may_be_none(field.type):
            whole[field.encode_name] = None
    return whole


def _takes_text(types: tuple[inspect.Type, ...]) -> bool:
    return any(isinstance(one, inspect.StrType | inspect.AnyType | inspect.LiteralType) for one in types)


def _may_be_none(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and kind.includes_none


def _candidate(row: Mapping[str, Any], index: int) -> CandidateState:
    where = f"results[{index}]"
    known = {key: value for key, value in row.items() if key not in ("series", "missing", "simulated")}
    found = _record(known, where, CandidateState)
    series = {name: table for name, table in row.get("series", {}).items() if name in SERIES}
    return msgspec.structs.replace(found, **_many_series(series, f"{where}.series"))


def _many_series(tables: Any, where: str) -> dict[str, Series]:
    return {str(name): series_from(table, f"{where}.{name}") for name, table in (tables or {}).items()}


def _points_of(session: Mapping[str, Any]) -> tuple[PlannedPoint, ...]:
    """The points of the load; none of a session that was saved before there were any."""
    tables = session.get("points", ())
    return tuple(_record(table, f"session.points[{index}]", PlannedPoint) for index, table in enumerate(tables))


def _points(columns: list[list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(("at_ns", "min", "max", "last"), row, strict=True)) for row in zip(*columns, strict=True)]


def _part(session: Mapping[str, Any], name: str, kind: type[Record]) -> Record | None:
    return _whole(session.get(name), f"session.{name}", kind)


def _whole(table: Any, where: str, kind: type[Record]) -> Record | None:
    return _record(table, where, kind) if isinstance(table, dict) else None


def _record(table: Any, where: str, kind: type[Record]) -> Record:
    try:
        return msgspec.convert(filled(table, inspect.type_info(kind)), kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise _broken(where, error) from error


def _typed(session: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = session.get(name)
    return value if isinstance(value, kind) else None


def _broken(where: str, error: Exception) -> ProfileError:
    return ProfileError(
        f"The saved results can't be read: {where} does not fit.",
        why=str(error),
        fix="Save the session again, or remove its tables from [session] on to measure anew.",
    )
