"""The curve over the points of a sweep, or of a search for capacity, as a table; as bars too where there is room."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from deploytui.compare.curve import CurvePoint, curve
from deploytui.record.capacity import Capacity
from deploytui.record.measured import Metrics
from deploytui.record.planned import By, PlannedPoint
from deploytui.record.state import CandidateState
from deploytui.tui.figures import MISSING, number, percent
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.sparks import lying
from deploytui.units import ms

DECIDED, PARETO, KNEE = "▸", "•", "◆"
LOADS: dict[By | None, str] = {"concurrency": "users", "rate": "rate", None: "point"}
BAR_LEAST, BAR_MOST = 10, 40
"""Cells of a bar."""


class Column(NamedTuple):
    """A column of the table; of two with the same `wanted` both go."""

    title: str
    width: int
    wanted: int
    """Columns with the highest go first where there is no room."""
    value: Callable[[CurvePoint], str]


def _success(share: float | None) -> str:
    """A share that is only called 100 % where nothing failed."""
    return percent(share) if share is None or share == 1 else f"{min(share * 100, 99.9):.1f} %"


COLUMNS = (
    Column("tok/s", 7, 0, lambda one: number(one.metrics.output_tok_s)),
    Column("/user", 7, 2, lambda one: number(one.tok_s_per_user)),
    Column("req/s", 7, 3, lambda one: number(one.metrics.request_s)),
    Column("TTFT p50", 9, 4, lambda one: number(ms(one.metrics.ttft.p50))),
    Column("TTFT p95", 9, 0, lambda one: number(ms(one.metrics.ttft.p95))),
    Column("TPOT p50", 9, 5, lambda one: number(ms(one.metrics.tpot.p50))),
    Column("TPOT p95", 9, 0, lambda one: number(ms(one.metrics.tpot.p95))),
    Column("ok", 7, 1, lambda one: _success(one.metrics.success_rate.value)),
    Column("goodput", 8, 6, lambda one: number(one.metrics.goodput)),
)


def curve_lines(candidate: CandidateState, planned: Sequence[PlannedPoint], width: int) -> tuple[Line, ...]:
    """The table in `width` cells, what was found of the capacity first; nothing for a load of a single point."""
    points = curve(measured_so_far(candidate), planned)
    known = capacity_lines(candidate.capacity) if candidate.capacity else ()
    if len(points) < 2:
        return tuple(known)
    columns, bars = layout(width)
    by = LOADS[next((one.by for one in points if one.by), None)]
    heads = "".join(f"{column.title:>{column.width}}" for column in columns)
    return (
        *known,
        line(Piece(visible(candidate.name), "strong"), Piece(legend(points), "dim"), *_unfinished(candidate, points)),
        line(Piece(f"{'':3}{by:>6}{heads}", "dim")),
        *_rows(points, candidate.point, columns, bars),
    )


def measured_so_far(candidate: CandidateState) -> dict[int, Metrics]:
    """Each point's pooled metrics; before they are known those of its last repeat."""
    return {record.step.point: record.metrics for record in candidate.repeats} | candidate.measured


def _unfinished(candidate: CandidateState, points: Sequence[CurvePoint]) -> Line:
    """Says so where a row is not of all repeats yet."""
    if all(one.point in candidate.measured for one in points):
        return ()
    return (Piece("  so far: last repeats", "dim"),)


def legend(points: Sequence[CurvePoint]) -> str:
    """What the signs mean, of those that stand there."""
    signs = [f"{DECIDED} decided here", f"{PARETO} Pareto"]
    return "  " + "  ".join([*signs, f"{KNEE} knee" if any(one.knee for one in points) else "no knee seen"])


def layout(width: int) -> tuple[list[Column], int]:
    """The columns that `width` has room for, and how many cells are left for bars; 0 where too few are."""
    columns = list(COLUMNS)
    while len(columns) > 3 and 9 + sum(column.width for column in columns) > width:
        columns.remove(max(columns, key=lambda column: column.wanted))
    left = width - 9 - sum(column.width for column in columns) - 2
    return columns, min(left, BAR_MOST) if left >= BAR_LEAST else 0


def _rows(points: Sequence[CurvePoint], decided: int | None, columns: Sequence[Column], bars: int) -> Iterable[Line]:
    most = max((one.metrics.output_tok_s or 0.0 for one in points), default=0.0)
    for one in points:
        marks = (
            Piece(DECIDED if one.point == decided else " ", "mark"),
            Piece(PARETO if one.pareto else " ", "good"),
            Piece(KNEE if one.knee else " ", "warn"),
        )
        asked = MISSING if one.asked is None else f"{one.asked:.6g}"
        figures = "".join(f"{column.value(one):>{column.width}}" for column in columns)
        bar = lying(one.metrics.output_tok_s or 0.0, most, bars) if bars else ""
        yield line(*marks, Piece(f"{asked:>6}", "strong"), figures, Piece(f"  {bar}" if bar else "", "bars"))


def capacity_lines(capacity: Capacity) -> Iterable[Line]:
    """What was found, which gate ended it, and what a reader must know of it."""
    what = "concurrent requests" if capacity.by == "concurrency" else "requests per second"
    yield line(Piece("capacity ", "dim"), Piece(capacity.span, "strong"), f" {what} within the gates")
    if capacity.first_bad is not None:
        yield line(Piece("✘ ", "bad"), f"at {capacity.first_bad:.6g}: {visible(capacity.why or 'missed')}")
    for note in capacity.notes:
        yield line(Piece("! ", "warn"), visible(note))
