"""Text with a tone: what pure functions say, before a style sheet gives it a colour."""

from typing import Literal, NamedTuple, get_args

from rich.cells import cell_len, set_cell_size

Tone = Literal["plain", "strong", "dim", "good", "bad", "warn", "busy", "bars", "mark", "on", "sim"]
"""What a piece means; a word or sign in the text always says it too."""

TONES: tuple[Tone, ...] = get_args(Tone)


class Piece(NamedTuple):
    """A stretch of text in one tone."""

    text: str
    tone: Tone = "plain"


Line = tuple[Piece, ...]


def line(*parts: Piece | str) -> Line:
    """A line of its non-empty parts; a bare text has no tone."""
    pieces = (part if isinstance(part, Piece) else Piece(part) for part in parts)
    return tuple(piece for piece in pieces if piece.text)


def text_of(parts: Line) -> str:
    """A line without its tones."""
    return "".join(piece.text for piece in parts)


def width_of(parts: Line) -> int:
    """How many terminal cells a line takes."""
    return sum(cell_len(piece.text) for piece in parts)


def fitted(parts: Line, width: int) -> Line:
    """The line in at most `width` cells, its loss marked by an ellipsis."""
    if width_of(parts) <= width:
        return parts
    kept, left = list[Piece](), max(width - 1, 0)
    for piece in parts:
        text = piece.text if cell_len(piece.text) <= left else set_cell_size(piece.text, left)
        kept.append(Piece(text, piece.tone))
        left -= cell_len(text)
        if left <= 0:
            break
    return line(*kept, Piece("…" if width > 0 else "", "dim"))


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` and `right` at the two ends of `width` cells; the right one stays whole as long as it can."""
    right = fitted(right, width)
    left = fitted(left, max(width - width_of(right) - 2, 0))
    return (*left, Piece(" " * max(width - width_of(left) - width_of(right), 0)), *right)
