"""Whether processes live, as /proc and their pidfd tell; a zombie is dead."""

import os
import re
import select
import time
from collections.abc import Callable, Iterable
from pathlib import Path

LIMIT_S = 20.0


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def all_die(pids: Iterable[int], within_s: float = LIMIT_S) -> bool:
    """Wait for the end of each; False when one lives on."""
    deadline = time.monotonic() + within_s
    return all(_dies(pid, deadline) for pid in pids)


def _dies(pid: int, deadline: float) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000)) or not alive(pid)
    finally:
        os.close(handle)


def until(state: Callable[[], bool], within_s: float = LIMIT_S) -> None:
    """Wait for a state; TimeoutError when it does not come."""
    deadline = time.monotonic() + within_s
    while not state():
        if time.monotonic() > deadline:
            raise TimeoutError("the state did not come")
        select.select([], [], [], 0.01)


def logged(path: Path, pattern: str) -> list[str]:
    """Wait for a line in a file that grows; all that matches then."""
    found: list[str] = []

    def there() -> bool:
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        found[:] = re.findall(pattern, text)
        return bool(found)

    until(there)
    return found


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    return [int(word) for word in text.split()]
