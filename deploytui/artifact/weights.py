"""What one or several files of weights come to: the words all readers of weights share."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from deploytui.record.facts import Failure


class Weights(Struct, frozen=True, kw_only=True):
    """Weights as their headers tell of them; parts that nobody tells are None."""

    files: tuple[Path, ...] = ()
    bytes: int | None = None
    """Of the files on disk."""
    parameters: int | None = None
    mix: dict[str, int] = {}
    """Bytes by tensor type, the largest first."""
    tensors: frozenset[str] = frozenset()
    faults: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()


def by_size(mix: Counter[str]) -> dict[str, int]:
    """The same, the largest first."""
    return dict(mix.most_common())


def size_of(paths: Iterable[Path]) -> int:
    """Bytes of all files that are there."""
    return sum(size for path in paths if (size := file_size(path)) is not None)


def file_size(path: Path) -> int | None:
    """Bytes of a file; None when it is not there."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return None
