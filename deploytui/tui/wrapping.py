"""Lines broken at a width, without losing their tones."""

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len, chop_cells

from deploytui.tui.pieces import Line, Piece, line, text_of, width_of

_WORDS = re.compile(r" +|[^ ]+")
_SIGN = re.compile(r"\s*(?:[✔✘~!=≠→·–] )?")
DEEPEST = 12


def wrapped(parts: Line, width: int, indent: int | None = None) -> Iterator[Line]:
    """The line in lines of at most `width` cells, broken between words; later ones stand under the first's text."""
    if width_of(parts) <= width or width <= 0:
        yield parts
        return
    hang = hanging(parts) if indent is None else indent
    hang = hang if hang < width // 2 else 0
    row, used = list[Piece](), 0
    for word in _words(parts, width - hang):
        blank = word.text.startswith(" ")
        if used + cell_len(word.text) > width:
            yield line(*row)
            row, used = [Piece(" " * hang)], hang
            if blank:
                continue
        row.append(word)
        used += cell_len(word.text)
    yield line(*row)


def wrapped_all(lines: Iterable[Line], width: int) -> tuple[Line, ...]:
    """All lines, each broken at the width."""
    return tuple(row for parts in lines for row in wrapped(parts, width))


def hanging(parts: Line) -> int:
    """How far later lines are indented: under the text behind a sign, or behind a label."""
    if len(parts) > 1 and parts[0].text.endswith(" ") and parts[0].text.strip() and len(parts[0].text) <= DEEPEST:
        return len(parts[0].text)
    found = _SIGN.match(text_of(parts))
    return found.end() if found else 0


def _words(parts: Line, most: int) -> Iterator[Piece]:
    """Words and gaps in order; a word wider than a line is chopped."""
    for piece in parts:
        for word in _WORDS.findall(piece.text):
            for part in chop_cells(word, most) if cell_len(word) > most else (word,):
                yield Piece(part, piece.tone)
