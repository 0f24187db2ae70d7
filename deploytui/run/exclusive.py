"""One process at a time: a lock file that is waited for without blocking the runner."""

import errno
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

LOOK_S = 0.2
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)
"""What a file system without locks answers: no reason to refuse."""


@asynccontextmanager
async def exclusive(path: Path, waits: Callable[[], None]) -> AsyncIterator[None]:
    """Hold the lock at `path` within the block; `waits` is told once when somebody else has it.

    The kernel lets it go when this process ends, however that happens. Where there can be no lock the block runs
    without: whatever it can't write there it says itself.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        yield
        return
    try:
        said = False
        while not _taken(lock):
            if not said:
                said = True
                waits()
            await anyio.sleep(LOOK_S)
        yield
    finally:
        os.close(lock)


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
    return True
