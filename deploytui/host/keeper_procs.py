"""Processes below this one: seen through /proc, known by number and start time."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from typing import NamedTuple

PROC = "/proc"


class Seen(NamedTuple):
    """A process as /proc tells it."""

    pid: int
    state: str
    parent: int
    group: int
    start: int


def readable() -> bool:
    """Whether processes can be seen here at all."""
    return os.path.isdir(PROC)


def look(pid: int) -> Seen | None:
    """The process with this number; None when there is none."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        return Seen(pid, words[0].decode(), int(words[1]), int(words[2]), int(words[19]))
    except (OSError, IndexError):
        return None


def descendants() -> list[Seen]:
    """All processes below this one, dead ones included: a dead leader may have threads that live."""
    below = defaultdict(list)
    for name in os.listdir(PROC) if readable() else ():
        seen = look(int(name)) if name.isdigit() else None
        if seen:
            below[seen.parent].append(seen)
    found: list[Seen] = []
    todo = [os.getpid()]
    while todo:
        children = below[todo.pop()]
        found += children
        todo += [child.pid for child in children]
    return found


def send(seen: Seen, number: int) -> None:
    """Signal this very process, and none that got its number later."""
    try:
        handle = os.pidfd_open(seen.pid) if hasattr(os, "pidfd_open") else -1
    except OSError:
        handle = -1
    try:
        now = look(seen.pid)
        if now is None or now.start != seen.start:
            return
        if handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(seen.pid, number)
    except OSError:
        return
    finally:
        if handle >= 0:
            os.close(handle)


def send_group(group: int, number: int) -> bool:
    """Signal a process group; False when there is nobody in it who could be signalled."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True
