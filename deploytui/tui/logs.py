"""The end of an engine's log, followed as it grows."""

from dataclasses import dataclass, field
from pathlib import Path

FIRST_LOOK = 1 << 16
"""How much of the end is read at first [bytes]."""
KEPT = 1000
"""Lines."""
EARLIER = "… earlier lines are in the file"


@dataclass
class LogTail:
    """Follows `engine.log`, and `engine.tail.log` once the log outgrew the first."""

    folder: Path
    lines: list[str] = field(default_factory=list)
    _path: Path | None = None
    _at: int = 0
    _torn: bytes = b""
    _skipped: bool = False

    def read(self) -> bool:
        """Read what is new; whether there was anything. A file that is just being rotated is read next time."""
        path = newest_log(self.folder)
        try:
            return path is not None and self._read(path)
        except FileNotFoundError:
            return False

    def _read(self, path: Path) -> bool:
        size = path.stat().st_size
        if path != self._path or size < self._at:
            self._begin(path, size)
        if size == self._at:
            return False
        with path.open("rb") as file:
            file.seek(self._at)
            self._take(file.read(size - self._at))
        return True

    def _begin(self, path: Path, size: int) -> None:
        """Begin near the end; the first line may be a piece of one."""
        self._path, self._at, self._torn = path, max(size - FIRST_LOOK, 0), b""
        self.lines, self._skipped = [], self._at > 0

    def _take(self, block: bytes) -> None:
        self._at += len(block)
        *whole, self._torn = (self._torn + block).split(b"\n")
        self.lines += [line.rstrip(b"\r").decode(errors="replace") for line in whole]
        self._skipped = self._skipped or len(self.lines) > KEPT
        del self.lines[:-KEPT]

    def text(self) -> list[str]:
        """The lines, with the unfinished one at the end, and a word before them when some are left out."""
        torn = [self._torn.decode(errors="replace")] if self._torn else []
        return [EARLIER] * self._skipped + self.lines + torn


def newest_log(folder: Path) -> Path | None:
    """The file that holds the newest output: the engine's, before it was started that of the last preparation; None
    when there is none.
    """
    places = (folder, *sorted(folder.glob("prepare.*"), reverse=True))
    return next((log for place in places if (log := _log_in(place)) is not None), None)


def _log_in(folder: Path) -> Path | None:
    tail = folder / "engine.tail.log"
    logs = [path for path in (tail, folder / "engine.log") if path.is_file()]
    return next((path for path in logs if path != tail or path.stat().st_size), None)
