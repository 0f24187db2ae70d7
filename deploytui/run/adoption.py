"""Orphans of our engines come to the runner, which ends them; nobody else's process is touched."""

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from deploytui.run.children import own_children
from deploytui.session.leftovers import MARK

if TYPE_CHECKING:
    import psutil

PR_SET_CHILD_SUBREAPER = 36
TRIES = 50


def adopt_orphans() -> None:
    """Ask the kernel to give us the orphans below us; only Linux can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def end_adopted(session: str) -> None:
    """Kill and reap orphans of this session that became our children; ours by right are left alone."""
    for _ in range(TRIES):
        orphans = _orphans(session)
        if not orphans:
            return
        for orphan in orphans:
            _end(orphan)
        await anyio.sleep(0.02)


def _end(orphan: "psutil.Process") -> None:
    import psutil

    with suppress(psutil.Error):
        orphan.kill()
    with suppress(ChildProcessError):
        os.waitpid(orphan.pid, os.WNOHANG)


def _orphans(session: str) -> list["psutil.Process"]:
    """Our children that carry the session's mark but were not started by us: engines and what they left."""
    import psutil

    return [child for child in psutil.Process().children() if _is_orphan(child, session)]


def _is_orphan(child: "psutil.Process", session: str) -> bool:
    import psutil

    if child.pid in own_children():
        return False
    try:
        return child.environ().get(MARK) == session
    except psutil.ZombieProcess:
        return True
    except psutil.Error:
        return False
