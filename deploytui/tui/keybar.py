"""Which key hints fit into a line."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from deploytui.tui.pieces import Line, Piece, line

GAP = 2


class Hint(NamedTuple):
    """A key and what it does; the smaller the rank, the longer it stays."""

    key: str
    label: str
    rank: int


def bar(hints: Sequence[Hint], width: int) -> Line:
    """The hints in their order; the least wanted ones are left out whole, none is cut."""
    kept = list(hints)
    while kept and sum(_width(hint) for hint in kept) + 1 > width:
        kept.remove(max(reversed(kept), key=lambda hint: hint.rank))
    return line(" ", *(piece for hint in kept for piece in _pieces(hint)))


def _width(hint: Hint) -> int:
    return cell_len(hint.key) + cell_len(hint.label) + bool(hint.label) + GAP


def _pieces(hint: Hint) -> Iterable[Piece]:
    yield Piece(hint.key, "mark")
    yield Piece(f"{' ' if hint.label else ''}{hint.label}{' ' * GAP}", "dim")
