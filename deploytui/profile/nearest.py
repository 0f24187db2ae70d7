"""Spelling help: the known word someone probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, whatever its case and dashes; None when none is like it."""
    plain = {_plain(candidate): candidate for candidate in known}
    close = get_close_matches(_plain(word), plain, n=1, cutoff=0.6)
    return plain[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence with the nearest known word, or with all of them when none is near."""
    words = tuple(known)
    close = nearest(word, words)
    if close is not None:
        return f'Did you mean "{close}"?'
    return f"Known here: {', '.join(words)}." if words else ""


def _plain(word: str) -> str:
    """The word without case, dashes and blanks."""
    return word.strip().lower().replace("-", "_").replace(" ", "_")
