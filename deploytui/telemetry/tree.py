"""Resident memory of process trees."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from deploytui.session.identity import GONE_STATES, process_facts

Parents = Mapping[int, int]
"""pid → parent's pid of every living process."""


def parents() -> Parents:
    """Who is whose child right now; the dead left out."""
    if sys.platform != "linux":
        return _portable_parents()
    with os.scandir("/proc") as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    facts = ((pid, process_facts(pid)) for pid in pids)
    return {pid: fact.parent for pid, fact in facts if fact and fact.state not in GONE_STATES}


def tree(root: int, known: Parents) -> tuple[int, ...]:
    """The root and all its descendants; empty when the root does not live."""
    if root not in known:
        return ()
    children: dict[int, list[int]] = {}
    for pid, parent in known.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, ())
    return tuple(found)


def resident_bytes(pid: int) -> int | None:
    """Resident memory of one process [bytes], shared pages included; None when it is gone or can't be read."""
    if sys.platform != "linux":
        return _portable_resident(pid)
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, IndexError):
        return None
    # A process without an address space, dead or the kernel's own, shows 0: unknown, not empty.
    return pages * os.sysconf("SC_PAGE_SIZE") or None


def sum_resident(pids: Iterable[int]) -> int | None:
    """Resident memory of processes together [bytes], those that are gone left out; None when none can be read."""
    known = [size for pid in pids if (size := resident_bytes(pid)) is not None]
    return sum(known) if known else None


def cpu_seconds(pids: Iterable[int]) -> float | None:
    """Processor time of processes together [s], those that are gone left out; None when none can be read."""
    known = [spent for pid in pids if (spent := _cpu_of(pid)) is not None]
    return sum(known) if known else None


def _cpu_of(pid: int) -> float | None:
    if sys.platform != "linux":
        return None
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return None


def tree_rss(pid: int) -> int | None:
    """Resident memory of a process and its descendants [bytes]; None when it does not live."""
    return sum_resident(tree(pid, parents()))


def _portable_parents() -> Parents:
    import psutil

    rows = (process.info for process in psutil.process_iter(["pid", "ppid", "status"]))
    return {row["pid"]: row["ppid"] for row in rows if row["status"] != psutil.STATUS_ZOMBIE}


def _portable_resident(pid: int) -> int | None:
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
