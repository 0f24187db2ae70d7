"""The points of a load and what is known of the capacity, as plain data and as a table. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from deploytui.compare.curve import CurvePoint, curve
from deploytui.export.metrics import load_metrics
from deploytui.export.plain import plain
from deploytui.export.tool_error import tool_error
from deploytui.record.capacity import Capacity, Search
from deploytui.record.planned import By, PlannedPoint
from deploytui.record.state import CandidateState, SessionState
from deploytui.units import ms

MISSING = "–"
HEAD = (
    *("", "load", "tok/s", "tok/s/user", "requests/s"),
    *("TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95", "success", "goodput"),
)
LEGEND = "▸ decided here, • Pareto, ◆ knee"


def points_result(row: CandidateState, state: SessionState) -> list[dict[str, Any]]:
    """Every measured point by rising load; `asked` is the concurrency, or the rate [requests/s], that `by` names."""
    return [
        {
            "point": one.point,
            "by": one.by,
            "asked": _asked(one.by, one.asked),
            "label": one.label,
            "workload_key": one.workload_key,
            "decided": one.point == row.point,
            "pareto": one.pareto,
            "knee": one.knee,
            "tok_s_per_user": one.tok_s_per_user,
            "metrics": load_metrics(one.metrics),
            "tool_error": tool_error(one.metrics),
        }
        for one in curve(row.measured, state.points)
    ]


def planned_result(points: Iterable[PlannedPoint]) -> list[dict[str, Any]]:
    """The points that were asked for."""
    return [
        {
            "point": one.point,
            "by": one.by,
            "asked": _asked(one.by, one.asked),
            "label": one.label,
            "workload_key": one.workload_key,
        }
        for one in points
    ]


def search_result(search: Search | None) -> dict[str, Any] | None:
    """What was searched for, all keys there; None where nothing was."""
    if search is None:
        return None
    ends = {name: _asked(search.by, getattr(search, name)) for name in ("lowest", "highest")}
    return {**_fields(search), **ends}


def capacity_result(capacity: Capacity | None) -> dict[str, Any] | None:
    """What a search found, all keys there; None where nothing was searched for."""
    if capacity is None:
        return None
    return {
        "by": capacity.by,
        "value": _asked(capacity.by, capacity.value),
        "first_bad": _asked(capacity.by, capacity.first_bad),
        "interval": capacity.span,
        "gate": capacity.gate or None,
        "why": capacity.why,
        "complete": capacity.complete,
        "tried": [{**_fields(one), "asked": _asked(capacity.by, one.asked)} for one in capacity.tried],
        "notes": list(capacity.notes),
    }


def _fields(record: Struct) -> dict[str, Any]:
    fields: dict[str, Any] = plain({name: getattr(record, name) for name in record.__struct_fields__})
    return fields


def _asked(by: By | None, asked: float | None) -> float | None:
    """A concurrency as the whole number that it is."""
    return int(asked) if asked is not None and by == "concurrency" else asked


def curve_table(row: CandidateState, state: SessionState) -> list[tuple[str, ...]]:
    """The rows of the curve with its head, latencies in ms; empty for a load of a single point."""
    points = curve(row.measured, state.points)
    return [HEAD, *(_cells(one, row.point) for one in points)] if len(points) > 1 else []


def capacity_lines(capacity: Capacity) -> Iterable[str]:
    """The capacity with its interval, what ended it, and its notes."""
    what = "concurrent requests" if capacity.by == "concurrency" else "requests per second"
    yield f"capacity {capacity.span} {what} within the gates"
    if capacity.first_bad is not None:
        yield f"✘ at {capacity.first_bad:.6g}: {capacity.why or 'missed'}"
    yield from (f"· {note}" for note in capacity.notes)


def _cells(one: CurvePoint, decided: int | None) -> tuple[str, ...]:
    metrics = one.metrics
    signs = (("▸", one.point == decided), ("•", one.pareto), ("◆", one.knee))
    success = metrics.success_rate.value
    return (
        "".join(sign if is_so else " " for sign, is_so in signs),
        one.label,
        *map(_figure, (metrics.output_tok_s, one.tok_s_per_user, metrics.request_s)),
        *(_figure(ms(value)) for value in (metrics.ttft.p50, metrics.ttft.p95, metrics.tpot.p50, metrics.tpot.p95)),
        MISSING if success is None else "100 %" if success == 1 else f"{min(success * 100, 99.9):.1f} %",
        _figure(metrics.goodput),
    )


def _figure(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def capacity_table(rows: Sequence[CandidateState]) -> list[tuple[str, ...]]:
    """A line a candidate: its capacity, the load and gate that ended it, and what it does at its capacity."""
    head = ("candidate", "capacity", "first missed at", "by", "tok/s there", "TTFT p95", "TPOT p95")
    return [head, *(_capacity_cells(row) for row in rows)]


def _capacity_cells(row: CandidateState) -> tuple[str, ...]:
    found, metrics = row.capacity, row.metrics
    there = metrics if found is not None and found.value is not None else None
    return (
        row.name,
        MISSING if found is None else found.span,
        MISSING if found is None or found.first_bad is None else f"{found.first_bad:.6g}",
        (found.gate if found else "") or MISSING,
        _figure(there.output_tok_s if there else None),
        _figure(ms(there.ttft.p95) if there else None),
        _figure(ms(there.tpot.p95) if there else None),
    )
