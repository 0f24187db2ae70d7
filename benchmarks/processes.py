"""The processes of a run while they live: processor time, memory, and what they are."""

import ctypes
import os
import time
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psutil

from benchmarks.cores import favour

Role = Literal["screen", "runner", "worker", "sampler", "other"]
RESCAN_NS = 200_000_000
MEMORY_NS = 500_000_000
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of what our children leave behind, so that its processor time can be read at its end."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cpu_ns(pid: int) -> int | None:
    """Processor time of all threads of a process so far [ns]; None when it is gone."""
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)  # Linux: the clock of another process
    except OSError:
        return None


def role_of(words: list[str]) -> Role:
    """What a process of deploytui is, by its command line."""
    if "deploytui.load.worker" in words:
        return "worker"
    if any(word.startswith("deploytui.telemetry") for word in words):
        return "sampler"
    if "deploytui" not in words:
        return "other"
    return "runner" if "run" in words else "screen"


@dataclass
class Life:
    """One process: what it is and its processor time at several moments."""

    pid: int
    role: Role
    at_ns: list[int] = field(default_factory=list)
    cpu_ns: list[int] = field(default_factory=list)
    rss: list[tuple[int, int]] = field(default_factory=list)
    """Moments [ns] and resident bytes."""
    peak_rss_bytes: int = 0

    def cpu_between(self, begin_ns: int, end_ns: int) -> float:
        """Processor time within a stretch [s], interpolated."""
        return (self._cpu_at(end_ns) - self._cpu_at(begin_ns)) / 1e9

    def _cpu_at(self, moment_ns: int) -> float:
        place = bisect_left(self.at_ns, moment_ns)
        if place == 0 or place == len(self.at_ns):
            return self.cpu_ns[min(place, len(self.cpu_ns) - 1)]
        a, b = self.at_ns[place - 1], self.at_ns[place]
        share = (moment_ns - a) / (b - a)
        return self.cpu_ns[place - 1] * (1 - share) + self.cpu_ns[place] * share


class Watch:
    """Looks at all processes below this one but the server; `look` is called every few milliseconds."""

    def __init__(self, server_pid: int, *, memory: bool = False) -> None:
        self.lives: dict[int, Life] = {}
        self.peak_pss: defaultdict[str, int] = defaultdict(int)
        """Most bytes at one moment (proportional set size): of `all`, and of `screen and worker` together."""
        self.reaped_cpu_s = 0.0
        """Whole-life processor time of the processes that have ended."""
        self._server, self._memory = server_pid, memory
        self._scanned_ns = self._weighed_ns = 0

    def look(self) -> None:
        """Take note of everything that is due."""
        now = time.monotonic_ns()
        if now - self._scanned_ns > RESCAN_NS:
            self._scanned_ns = now
            self._scan()
        if self._memory and now - self._weighed_ns > MEMORY_NS:
            self._weighed_ns = now
            self._weigh(now)
        for life in self.lives.values():
            spent = cpu_ns(life.pid)
            if spent is not None:
                life.at_ns.append(time.monotonic_ns())
                life.cpu_ns.append(spent)

    def reap(self) -> set[int]:
        """Take in the processes that have ended; their pids."""
        ended: set[int] = set()
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return ended
            if found is None:
                return ended
            if found.si_pid == self._server:
                raise RuntimeError("the server ended")
            _, _, usage = os.wait4(found.si_pid, 0)
            self.reaped_cpu_s += usage.ru_utime + usage.ru_stime
            ended.add(found.si_pid)

    def of(self, role: Role) -> list[Life]:
        """The processes that play a role."""
        return [life for life in self.lives.values() if life.role == role]

    def alive(self) -> list[int]:
        """Pids of the processes below this one, without the server."""
        return [child.pid for child in psutil.Process().children(recursive=True) if child.pid != self._server]

    def _scan(self) -> None:
        for pid in self.alive():
            try:
                said = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                if pid not in self.lives:
                    favour(pid)
                life = self.lives.setdefault(pid, Life(pid, "other"))
                life.role = role_of(said.split("\0")) if said else life.role  # one that has ended says nothing
                life.peak_rss_bytes = _peak_rss(pid) or life.peak_rss_bytes
            except OSError:
                continue

    def _weigh(self, now_ns: int) -> None:
        sums: defaultdict[str, int] = defaultdict(int)
        for life in self.lives.values():
            try:
                memory = psutil.Process(life.pid).memory_full_info()
            except psutil.Error:
                continue
            life.rss.append((now_ns, memory.rss))
            sums["all"] += memory.pss
            if life.role in ("screen", "worker"):
                sums["screen and worker"] += memory.pss
        for name, total in sums.items():
            self.peak_pss[name] = max(self.peak_pss[name], total)


def _peak_rss(pid: int) -> int | None:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None
