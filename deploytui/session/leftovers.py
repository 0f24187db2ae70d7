"""Processes that outlived their session: found by the mark in their environment, and ended.

Two simultaneous kill -9, of a runner and of an engine's keeper, leave the engine; the next start looks for it here.
"""

import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from deploytui.session.folder import SessionFolder, session_ids
from deploytui.session.identity import process_alive, process_facts
from deploytui.session.lock import holder, last_holder

MARK = "DEPLOYTUI_SESSION"
GRACE_S = 3.0
INSIST_S = 5.0
ROUNDS = 3
"""How often to look again for what was forked while others were being ended."""


class Leftover(Struct, frozen=True, kw_only=True):
    """A process that carries a session's mark; pid and start time together are its identity."""

    pid: int
    started: int
    session: str
    program: str
    """The first word of its command only: an argument may be a secret."""


def mark(session: str) -> dict[str, str]:
    """What every child of a session's runner has in its environment.

    setproctitle writes over the memory that /proc/PID/environ shows, unless SPT_NOENV is set.
    """
    return {MARK: session, "SPT_NOENV": "1"}


def leftover_processes(sessions: Collection[str]) -> list[Leftover]:
    """This user's living processes marked with one of the sessions; never this process or an ancestor of it."""
    spared = _ancestry(os.getpid())
    found = []
    for pid in _pids():
        facts = process_facts(pid) if pid not in spared else None
        session = session_of(pid) if facts else None
        if facts and session in sessions and process_alive(pid, facts.started):
            found.append(Leftover(pid=pid, started=facts.started, session=str(session), program=_program(pid)))
    return found


def dead_sessions(state: Path) -> list[str]:
    """Ids of the sessions in the state folder whose runner is surely not alive on any host."""
    return [known for known in session_ids(state) if _is_dead(SessionFolder(state / known))]


def reap_dead_sessions(state: Path, grace_s: float = GRACE_S) -> list[Leftover]:
    """End what dead sessions left running and say what that was; blocks, so call it in a thread."""
    dead, reaped = set(dead_sessions(state)), list[Leftover]()
    for _ in range(ROUNDS):
        left = leftover_processes(dead)
        if not left:
            break
        reaped += [one for one in left if one not in reaped]
        reap(left, grace_s)
    return reaped


def reap(left: Collection[Leftover], grace_s: float = GRACE_S) -> list[Leftover]:
    """Ask, then insist, until all are gone; those that are not gone even then. Blocks."""
    for sign, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, INSIST_S)):
        left = [one for one in left if process_alive(one.pid, one.started)]
        for one in left:
            _send(one, sign)
        _wait_gone(left, wait_s)
    return [one for one in left if process_alive(one.pid, one.started)]


def _is_dead(folder: SessionFolder) -> bool:
    # A copied session folder is not locked, but its lock file names a runner that may live.
    last = last_holder(folder)
    return holder(folder) is None and not (last and last.alive())


def _wait_gone(left: Collection[Leftover], wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while any(process_alive(one.pid, one.started) for one in left) and time.monotonic() < end:
        time.sleep(0.02)


def _send(one: Leftover, sign: signal.Signals) -> None:
    """Signal that very process: a descriptor of it can't come to mean another one, a pid can."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "linux":
            _send_by_pid(one, sign)
            return
        try:
            fd = os.pidfd_open(one.pid)
        except OSError:
            _send_by_pid(one, sign)
            return
        try:
            if process_alive(one.pid, one.started):
                signal.pidfd_send_signal(fd, sign)
        finally:
            os.close(fd)


def _send_by_pid(one: Leftover, sign: signal.Signals) -> None:
    if process_alive(one.pid, one.started):
        os.kill(one.pid, sign)


def _ancestry(pid: int) -> frozenset[int]:
    """The process and all its ancestors."""
    seen: set[int] = set()
    while pid > 0 and pid not in seen:
        seen.add(pid)
        facts = process_facts(pid)
        pid = facts.parent if facts else 0
    return frozenset(seen)


def _pids() -> Iterator[int]:
    if sys.platform != "linux":
        import psutil

        yield from psutil.pids()
        return
    with os.scandir("/proc") as entries:
        yield from [int(entry.name) for entry in entries if entry.name.isdigit()]


def session_of(pid: int) -> str | None:
    """The session whose mark is in a process's first environment; None without one, or when it is not ours to read."""
    if sys.platform != "linux":
        return _portable_mark(pid)
    place = Path(f"/proc/{pid}")
    try:
        if place.stat().st_uid != os.getuid():
            return None
        entries = (place / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    begin = f"{MARK}=".encode()
    return next((one[len(begin) :].decode(errors="replace") for one in entries if one.startswith(begin)), None)


def _portable_mark(pid: int) -> str | None:
    import psutil

    try:
        return psutil.Process(pid).environ().get(MARK)
    except (psutil.Error, OSError):
        return None


def _program(pid: int) -> str:
    """The program, or the title the process gave itself; empty when it does not tell."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return words.partition(b"\0")[0].decode(errors="replace")[:200]
