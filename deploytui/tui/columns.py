"""Which columns of the grid fit into a width, and how wide each is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from deploytui.tui.cells import Quantile
from deploytui.tui.pieces import Line, Piece, fitted, line, width_of

MARKER = 4
"""Cells before the first column: selected, marked, winner, a gap."""
KEYS = ("name", "engine", "artifact", "phase", "memory", "tokens", "ttft", "tpot", "quality", "verdict")
DROPPED_FIRST = ("artifact", "engine", "tpot", "quality", "memory", "ttft", "tokens")
LEAST = {"phase": 13, "memory": 11, "tokens": 11, "ttft": 8, "tpot": 8, "quality": 7, "verdict": 14}
MOST = {"name": 28, "engine": 18, "artifact": 14, "verdict": 40}
NAME_KEEPS = 16
PHASE_WITH_TIME = 20
RIGHT = frozenset({"memory", "tokens", "ttft", "tpot", "quality"})
"""Columns of plain numbers, which stand right."""


class Column(NamedTuple):
    """A column that is shown: `cell` names the form of the cell, `x` its first terminal cell."""

    key: str
    cell: str
    title: str
    x: int
    width: int


def titles(*, gpu: bool, quantile: Quantile) -> dict[str, str]:
    """The headings; they say what the memory is of and which percentile all rows show."""
    return {
        "name": "candidate",
        "engine": "engine",
        "artifact": "artifact",
        "phase": "phase",
        "memory": "GPU GiB" if gpu else "host GiB",
        "tokens": "tokens/s",
        "ttft": f"TTFT {quantile}",
        "tpot": f"TPOT {quantile}",
        "quality": "quality",
        "verdict": "verdict",
    }


def layout(width: int, rows: Sequence[Mapping[str, Line]], heads: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns for `width` terminal cells: the least wanted go first, what is left over goes to the texts."""
    natural = {key: _natural(key, rows, heads) for key in (*KEYS, "engine.short", "verdict.sim")}
    keys = _kept(width, natural)
    widths = {key: _least(key, natural) for key in keys}
    spare = width - _total(widths.values())
    for key, want in _wishes(natural):
        if key in widths and spare > 0:
            grown = min(spare, max(want - widths[key], 0))
            if key in ("engine", "phase") and grown < want - widths[key]:
                continue
            widths[key] += grown
            spare -= grown
    return tuple(_placed(keys, widths, heads))


def _kept(width: int, natural: Mapping[str, int]) -> tuple[str, ...]:
    keys: tuple[str, ...] = KEYS
    for dropped in DROPPED_FIRST:
        if _total(_least(key, natural) for key in keys) <= width:
            break
        keys = tuple(key for key in keys if key != dropped)
    return keys


def _total(widths: Iterable[int]) -> int:
    """The cells a row of such columns takes, with a gap before all but the first."""
    parts = list(widths)
    return MARKER + sum(parts) + len(parts) - 1


def _natural(key: str, rows: Sequence[Mapping[str, Line]], heads: Mapping[str, str]) -> int:
    head = len(heads[key.partition(".")[0]])
    return max([head, *(width_of(cells[key]) for cells in rows)])


def _least(key: str, natural: Mapping[str, int]) -> int:
    if key == "name":
        return min(natural[key], NAME_KEEPS)
    if key == "engine":
        return min(natural["engine.short"], MOST["engine"])
    if key in ("memory", "tokens"):
        return max(LEAST[key], natural[key])
    return LEAST.get(key) or min(natural[key], MOST.get(key, natural[key]))


def _wishes(natural: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Who may grow, to what, in the order in which it is served."""
    return (
        ("verdict", min(natural["verdict"], MOST["verdict"])),
        ("phase", PHASE_WITH_TIME),
        ("name", min(natural["name"], MOST["name"])),
        ("engine", min(natural["engine"], MOST["engine"])),
        ("verdict", 1000),
    )


def _placed(keys: Sequence[str], widths: Mapping[str, int], heads: Mapping[str, str]) -> Iterable[Column]:
    x = MARKER
    for key in keys:
        cell = "verdict.sim" if key == "verdict" and "engine" not in keys else key
        yield Column(key, cell, heads[key], x, widths[key])
        x += widths[key] + 1


def cell_of(cells: Mapping[str, Line], column: Column) -> Line:
    """A row's cell filled up to the column's width, in its short form where the whole one does not fit."""
    parts = cells[column.cell]
    if width_of(parts) > column.width:
        parts = cells.get(f"{column.cell}.short", parts)
    shown = fitted(parts, column.width)
    fill = Piece(" " * (column.width - width_of(shown)))
    return line(fill, *shown) if column.key in RIGHT else line(*shown, fill)
