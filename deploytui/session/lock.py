"""Who writes a session: an `flock` held for life, with host, boot, pid and start time inside.

The lock decides on one host; what is written in it tells who it is, and protects a session of another host where the
file system does not carry locks over.
"""

import errno
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from deploytui.errors import SessionError
from deploytui.session.folder import SessionFolder
from deploytui.session.identity import boot_id, hostname, process_alive, start_time

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
PATIENCE_S = 1.0
"""How long to try when the lock is taken but its holder is not seen: someone may just be looking [s]."""


class Holder(Struct, frozen=True, kw_only=True):
    """The process that holds a session; `pid` is None when it has not written itself in."""

    hostname: str
    boot_id: str | None = None
    pid: int | None = None
    started: int | None = None

    @property
    def elsewhere(self) -> bool:
        """Whether it is on another host; whether it lives can't be told from here then."""
        return self.hostname != hostname()

    def alive(self) -> bool:
        """Whether it is seen living on this host in this boot."""
        if self.elsewhere or self.boot_id != boot_id() or self.pid is None:
            return False
        return process_alive(self.pid, self.started)

    def text(self) -> str:
        """Such as `process 4711 on gpu-node-07`."""
        return f"process {self.pid if self.pid is not None else '(unknown)'} on {self.hostname}"


class SessionLock:
    """The right to write a session; let go at the end of the block, or with the process."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    @classmethod
    def acquire(cls, folder: SessionFolder, patience_s: float = PATIENCE_S) -> Self:
        """Take the session; SessionError names who has it."""
        try:
            fd = os.open(folder.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(folder, error) from error
        try:
            _take(fd, folder, patience_s)
            _write_in(fd)
        except OSError as error:
            os.close(fd)
            raise _unwritable(folder, error) from error
        except SessionError:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        """Let go; a second time does nothing."""
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def holder(folder: SessionFolder) -> Holder | None:
    """Who holds the session, here or on another host; None when nobody does, or the one who did is dead."""
    try:
        fd = os.open(folder.lock_file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        written = _written(fd)
        if written is not None and written.elsewhere:
            return written
        if _locked(fd, written):
            return written or _written(fd) or Holder(hostname=hostname())
        return None
    finally:
        os.close(fd)


def last_holder(folder: SessionFolder) -> Holder | None:
    """What the lock file says, whether it holds or not; None when it says nothing."""
    try:
        return _decoded(folder.lock_file.read_bytes())
    except OSError:
        return None


def _take(fd: int, folder: SessionFolder, patience_s: float) -> None:
    end = time.monotonic() + patience_s
    while not _try(fd, fcntl.LOCK_EX):
        written = _written(fd)
        if (written and (written.elsewhere or written.alive())) or time.monotonic() > end:
            raise _taken(folder, written or Holder(hostname=hostname()))
        time.sleep(0.02)
    written = _written(fd)
    if written and (written.elsewhere or _lives_without_lock(fd, written)):
        raise _taken(folder, written)


def _try(fd: int, kind: int) -> bool:
    """Whether the lock was got; True also where the file system has none, then what is written decides."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _lives_without_lock(fd: int, written: Holder) -> bool:
    """Whether the one written in lives on, on a file system that has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _NO_LOCKS and written.alive()
    return False


def _locked(fd: int, written: Holder | None) -> bool:
    # Shared: two who look don't see each other.
    if not _try(fd, fcntl.LOCK_SH):
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        return written is not None and written.alive()
    return False


def _write_in(fd: int) -> None:
    pid = os.getpid()
    me = Holder(hostname=hostname(), boot_id=boot_id(), pid=pid, started=start_time(pid))
    os.ftruncate(fd, 0)
    os.pwrite(fd, msgspec.json.encode(me) + b"\n", 0)
    os.fsync(fd)


def _written(fd: int) -> Holder | None:
    return _decoded(os.pread(fd, 4096, 0))


def _decoded(content: bytes) -> Holder | None:
    try:
        return msgspec.json.decode(content, type=Holder)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _taken(folder: SessionFolder, by: Holder) -> SessionError:
    if by.elsewhere:
        return SessionError(
            f"Session {folder.id} belongs to {by.text()}; it is read-only here.",
            fix=f"Use it on {by.hostname}; if that host is gone for good, delete {folder.lock_file}.",
        )
    return SessionError(
        f"Session {folder.id} is running already ({by.text()}).",
        fix=f"`deploytui attach {folder.id}` shows it.",
    )


def _unwritable(folder: SessionFolder, error: OSError) -> SessionError:
    path: Path = folder.path
    return SessionError(
        f"The session folder {path} can't be written.", why=str(error), fix="Check its owner, its mode and free space."
    )
