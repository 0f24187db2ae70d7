"""Which core serves and which one measures, and what else the machine was doing."""

import os
import platform
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from deploytui.run.selftest_cores import on


@dataclass(frozen=True)
class Cores:
    """A core for the server, one for all of a client; this process, which only looks on, takes another if there is."""

    server: int
    client: int
    watcher: int
    spare: tuple[int, ...]
    """Cores nobody uses."""


def chosen() -> Cores:
    """Two cores that are not threads of one, where the machine has them; SystemExit on a single core."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        raise SystemExit("Two cores are needed: one for the server, one for the client.")
    server = mine[0]
    others = [core for core in mine[1:] if core not in _siblings(server)] or mine[1:]
    client, *rest = others
    watcher, *spare = rest or [server]
    return Cores(server=server, client=client, watcher=watcher, spare=tuple(spare))


def _siblings(core: int) -> set[int]:
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
    except OSError:
        return {core}
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def on_cores(*cores: int) -> AbstractContextManager[None]:
    """Processes started within the block run on these cores."""
    return on(frozenset(cores))


def favour(pid: int) -> bool:
    """Put a process's scheduling group ahead of other users' work, where that is allowed; whether it was."""
    try:
        Path(f"/proc/{pid}/autogroup").write_text("-15")
    except OSError:
        return False
    return True


def circumstances(cores: Cores, *, favoured: bool) -> list[str]:
    """What a reader must know about the machine, the tree and the hour."""
    where = f"server on core {cores.server}, client on core {cores.client}, watcher on core {cores.watcher}"
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return [
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}, {_revision()}, Python {platform.python_version()}",
        f"{platform.system()} {platform.release()}, {_processor()}, {os.cpu_count()} cores: {where}",
        f"load average before: {load}; scheduling groups put ahead of others: {'yes' if favoured else 'no'}",
    ]


def _revision() -> str:
    def told(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return f"tree {told('rev-parse', '--short', 'HEAD') or 'unknown'}{' with changes' if told('status', '-s') else ''}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
