"""Records and chunk stamps on disk, written by a thread of their own: a slow disk moves no stamp.

The thread shares the interpreter with the event loop, so it wakes seldom and takes many requests at once; hashing,
writing and syncing happen without the interpreter's lock.
"""

import errno
import hashlib
import os
import stat
import threading
from array import array
from collections import deque
from collections.abc import Callable
from itertools import accumulate

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from deploytui.load.orders import LoadOrder
from deploytui.load.stamps import MAGIC, pack_stamps
from deploytui.load.trouble import LoadError
from deploytui.record.trace import RequestRecord

GATHER_S = 0.1
"""How long finished requests gather before they are written [s]."""
BATCH = 64
"""Most requests in one write: encoding them holds the interpreter's lock for some tenths of a millisecond."""
SYNC_BYTES = 8 << 20
"""Written data is brought to the disk after so much of it, so that little is left for the end [bytes]."""

HIDDEN = "…"
"""What stands in the place of a secret."""

_encode = msgspec.json.Encoder().encode


class File(Struct, frozen=True):
    """What was written to a file."""

    sha256: str
    bytes: int


class Written(Struct, frozen=True):
    """Both files, on disk."""

    records: File
    stamps: File


class _Sidecar:
    """One append-only file; of a write that does not fit the entries that did stay, whole ones only."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LoadError(f"{path} can't be opened for writing.", why=str(error)) from error
        about = os.fstat(self._fd)
        self._regular = stat.S_ISREG(about.st_mode)
        self._size = self._synced = 0
        self.fault: LoadError | None = None
        """Why it takes no more."""
        self._digest = hashlib.sha256()
        if self._regular and about.st_size:
            os.close(self._fd)
            raise LoadError(f"{path} already holds results.", fix="Name a file that does not exist.")

    def write(self, entries: list[bytes]) -> int:
        """Append in one write; how many entries stayed. `fault` is set when not all did."""
        content, written, why = b"".join(entries), 0, os.strerror(errno.ENOSPC)
        try:
            written = os.write(self._fd, content)
        except OSError as error:
            why = str(error)
        count = len(entries) if written == len(content) else _whole(entries, written)
        kept = b"".join(entries[:count]) if count < len(entries) else content
        self._digest.update(kept)
        self._size += len(kept)
        if count < len(entries):
            if self._regular:
                os.ftruncate(self._fd, self._size)
            self.fault = LoadError(f"{self.path} can't be written.", why=why, fix="Make room on that disk.")
        elif self._size - self._synced > SYNC_BYTES:
            self._sync()
        return count

    def _sync(self) -> None:
        self._synced = self._size
        try:
            if self._regular:
                os.fsync(self._fd)
        except OSError as error:
            raise LoadError(f"{self.path} can't be brought to the disk.", why=str(error)) from error

    def close(self) -> None:
        """Bring it to the disk."""
        try:
            self._sync()
        finally:
            os.close(self._fd)

    @property
    def written(self) -> File:
        """What it holds."""
        return File(self._digest.hexdigest(), self._size)


def _whole(entries: list[bytes], written: int) -> int:
    """How many entries are whole within so many bytes."""
    ends = accumulate(map(len, entries))
    return sum(end <= written for end in ends)


def _without(text: str, keys: tuple[str, ...]) -> str:
    for key in keys:
        text = text.replace(key, HIDDEN)
    return text


class Sidecars:
    """Takes finished requests; `failed` is called once, from the writing thread, when the disk takes no more."""

    def __init__(self, order: LoadOrder, failed: Callable[[], None]) -> None:
        self._records = _Sidecar(order.records)
        self._stamps = _Sidecar(order.stamps)
        self._failed = failed
        self._keys = order.keys
        self._secrets = [msgspec.json.encode(secret)[1:-1] for secret in order.secrets]
        self._waiting: deque[tuple[RequestRecord, array[int]]] = deque()
        self._closing = threading.Event()
        self._error: LoadError | None = None
        self._thread = threading.Thread(target=self._write_all, name="sidecars", daemon=True)
        self._thread.start()

    def put(self, record: RequestRecord, stamps: "array[int]") -> None:
        """Have a finished request written; never waits."""
        self._waiting.append((record, stamps))

    def close(self) -> Written:
        """Wait until all is written and synced; raises LoadError when something is not."""
        self._closing.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return Written(self._records.written, self._stamps.written)

    def _write_all(self) -> None:
        try:
            self._stamps.write([MAGIC])
            if self._stamps.fault is not None:
                raise self._stamps.fault
            last = False
            while not last:
                last = self._closing.wait(GATHER_S)
                while self._waiting:
                    self._write_batch()
        except LoadError as error:
            self._give_up(error)
        for file in (self._stamps, self._records):
            try:
                file.close()
            except LoadError as error:
                self._give_up(error)

    def _write_batch(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        kept = self._stamps.write(
            [pack_stamps(record.id, record.clock, record.sent_ns, stamps) for record, stamps in batch]
        )
        self._records.write([self._line(record) for record, _ in batch[:kept]])
        for file in (self._stamps, self._records):
            if file.fault is not None:
                raise file.fault

    def _line(self, record: RequestRecord) -> bytes:
        """The record without secrets: a server may repeat in an error what it was sent.

        A key may be as short as a word of the model's, so it is looked for in the error alone.
        """
        if record.error and self._keys:
            record = replace(record, error=_without(record.error, self._keys))
        line = _encode(record)
        for secret in self._secrets if record.error or record.text or record.reasoning else ():
            line = line.replace(secret, HIDDEN.encode())
        return line + b"\n"

    def _give_up(self, error: LoadError) -> None:
        if self._error is None:
            self._error = error
            self._failed()
