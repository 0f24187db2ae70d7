"""Who a process is: host, boot, pid and start time. A pid alone is no identity, the kernel uses it again."""

import socket
import sys
from pathlib import Path

from msgspec import Struct

GONE_STATES = frozenset("ZXx")
"""A process in one of these is dead, whatever `kill 0` says."""


class ProcessFacts(Struct, frozen=True):
    """One process as the kernel tells it; `started` in clock ticks since boot (elsewhere hundredths of a second)."""

    state: str
    parent: int
    started: int


def hostname() -> str:
    """The name of this host."""
    return socket.gethostname()


def boot_id() -> str | None:
    """What tells one boot of this host from another; None where the kernel does not."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def process_facts(pid: int) -> ProcessFacts | None:
    """State, parent and start time of a process; None when there is none."""
    if sys.platform != "linux":
        return _portable_facts(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rfind(b")") + 1 :].split()
    return ProcessFacts(fields[0].decode("ascii"), int(fields[1]), int(fields[19])) if len(fields) > 19 else None


def start_time(pid: int) -> int | None:
    """When a process started, in the unit of `ProcessFacts`; None when there is none."""
    facts = process_facts(pid)
    return facts.started if facts else None


def process_alive(pid: int, started: int | None) -> bool:
    """Whether this very process lives; without a start time, whether any process of that pid does."""
    facts = process_facts(pid)
    return facts is not None and facts.state not in GONE_STATES and started in (None, facts.started)


def _portable_facts(pid: int) -> ProcessFacts | None:
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            state = "Z" if process.status() == psutil.STATUS_ZOMBIE else "S"
            return ProcessFacts(state, process.ppid(), int(process.create_time() * 100))
    except psutil.Error:
        return None
