"""Records and chunk stamps on disk, written by a thread of their own: a slow disk moves no stamp."""

import errno
import os
import stat
import threading
from array import array
from collections.abc import Callable
from queue import SimpleQueue

import msgspec

from deploytui.load.stamps import MAGIC, pack_stamps
from deploytui.load.trouble import LoadError
from deploytui.record.trace import RequestRecord

_encode = msgspec.json.Encoder().encode


class _Sidecar:
    """One append-only file; a write that does not fit is taken back, so that only whole entries stay."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LoadError(f"{path} can't be opened for writing.", why=str(error)) from error
        about = os.fstat(self._fd)
        self._regular = stat.S_ISREG(about.st_mode)
        self._size = 0
        if self._regular and about.st_size:
            os.close(self._fd)
            raise LoadError(f"{path} already holds results.", fix="Name a file that does not exist.")

    def write(self, entry: bytes) -> None:
        """Append in one write."""
        try:
            written = os.write(self._fd, entry)
            if written < len(entry):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            if self._regular:
                os.ftruncate(self._fd, self._size)
            raise LoadError(f"{self.path} can't be written.", why=str(error), fix="Make room on that disk.") from error
        self._size += written

    def close(self) -> None:
        """Bring it to the disk."""
        try:
            if self._regular:
                os.fsync(self._fd)
        except OSError as error:
            raise LoadError(f"{self.path} can't be brought to the disk.", why=str(error)) from error
        finally:
            os.close(self._fd)


class Sidecars:
    """Takes finished requests; `failed` is called once, from the writing thread, when the disk takes no more."""

    def __init__(self, records: str, stamps: str, failed: Callable[[], None]) -> None:
        self._records = _Sidecar(records)
        self._stamps = _Sidecar(stamps)
        self._failed = failed
        self._waiting: SimpleQueue[tuple[RequestRecord, array[int]] | None] = SimpleQueue()
        self._error: LoadError | None = None
        self._thread = threading.Thread(target=self._write_all, name="sidecars", daemon=True)
        self._thread.start()

    def put(self, record: RequestRecord, stamps: "array[int]") -> None:
        """Have a finished request written; never waits."""
        self._waiting.put((record, stamps))

    def close(self) -> None:
        """Wait until all is written and synced; raises LoadError when something is not."""
        self._waiting.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _write_all(self) -> None:
        try:
            self._stamps.write(MAGIC)
            while (entry := self._waiting.get()) is not None:
                record, stamps = entry
                self._stamps.write(pack_stamps(record.id, stamps))
                self._records.write(_encode(record) + b"\n")
        except LoadError as error:
            self._give_up(error)
        for file in (self._stamps, self._records):
            try:
                file.close()
            except LoadError as error:
                self._give_up(error)

    def _give_up(self, error: LoadError) -> None:
        if self._error is None:
            self._error = error
            self._failed()
