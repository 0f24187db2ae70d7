"""Foreign text made safe to show: one line, no control characters, nothing a terminal would obey."""

import unicodedata

from rich.cells import cell_len, set_cell_size

TAB = "    "
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """The text with tabs as spaces and every control, format or unassigned character as a visible stand-in."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` terminal cells, its loss marked by an ellipsis."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1) + "…" if width > 0 else ""


def _shown(char: str) -> str:
    """Control pictures for C0, `\\xNN` or `\\uNNNN` for what has none."""
    code = ord(char)
    if char == "\t":
        return TAB
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if char in _BIDI or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"):
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char
