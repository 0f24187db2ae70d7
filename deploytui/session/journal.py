"""The writing end of the journal: append-only, one writer, one `os.write` a line, never a torn line left behind."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from deploytui.errors import SessionError
from deploytui.record.events import AnyEvent, encode

BLOCK = 1 << 16
_datasync = getattr(os, "fdatasync", os.fsync)


class JournalFullError(SessionError):
    """A line could not be written, or not be brought to disk; what was there before is whole."""


class Journal:
    """Open for appending; `broken` says why the last write failed, and is empty while all is well."""

    def __init__(self, path: Path, fd: int, size: int) -> None:
        self.path = path
        self.broken = ""
        self._fd = fd
        self._size = size

    @classmethod
    def open(cls, path: Path) -> tuple[Self, int]:
        """The journal and how many bytes of a torn last line were cut off; SessionError when it can't be written."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            _claim(fd, path)
            whole, size = whole_bytes(fd), os.fstat(fd).st_size
            os.ftruncate(fd, whole)
        except OSError as error:
            os.close(fd)
            raise _unwritable(path, error) from error
        except SessionError:
            os.close(fd)
            raise
        return cls(path, fd, whole), size - whole

    def append(self, event: AnyEvent) -> None:
        """Write one line; JournalFullError each time it can't be, with the file cut back to its last whole line."""
        line = encode(event)
        try:
            if self.broken:
                os.ftruncate(self._fd, self._size)
            written = os.write(self._fd, line)
        except OSError as error:
            raise self._failed(str(error)) from error
        if written < len(line):
            raise self._failed(f"only {written} of {len(line)} bytes of a line fitted")
        self._size += written
        self.broken = ""

    def sync(self) -> None:
        """Return when all lines are on disk; blocks, so call it in a thread. JournalFullError when they may not be."""
        try:
            _datasync(self._fd)
        except OSError as error:
            raise _full(self.path, str(error)) from error

    def close(self) -> None:
        """No more lines; a second time does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _failed(self, why: str) -> JournalFullError:
        """Cut back what a failed write left; when even that fails, the next append tries it again first."""
        self.broken = why
        try:
            os.ftruncate(self._fd, self._size)
        except OSError as error:
            self.broken = f"{why}; a torn line is left ({error})"
        return _full(self.path, self.broken)


def whole_bytes(fd: int) -> int:
    """How many bytes of an open file end with a newline."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - BLOCK)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _claim(fd: int, path: Path) -> None:
    """Refuse a second writer where the file system has locks; the session's lock comes before this one."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SessionError(
            f"Another process writes {path}.", fix="Wait for it to end, or use another session."
        ) from None
    except OSError:
        return


def _unwritable(path: Path, error: OSError) -> SessionError:
    return SessionError(
        f"The journal {path} can't be written.",
        why=str(error),
        fix="Check the folder's owner, its mode and free space.",
    )


def _full(path: Path, why: str) -> JournalFullError:
    return JournalFullError(
        f"The journal {path} could not take a line.",
        why=why,
        fix="Make room on that disk; what was recorded before is safe.",
    )
