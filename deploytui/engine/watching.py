"""Whether code reaches out of its process while it runs: it starts processes, connects, or writes files."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

REACHING_OUT = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "socket.connect",
    "socket.bind",
)
"""What the interpreter itself tells of such things, whoever does them."""


@contextmanager
def watched(found: list[str]) -> Iterator[None]:
    """Note as a fault whatever reaches out of this process meanwhile: processes, connections, files written."""
    if not _watchers:
        sys.addaudithook(_heard)
    _watchers.append(found)
    try:
        yield
    finally:
        _watchers[-1] = None


_watchers: list[list[str] | None] = []
"""The list that is written to is the last; an audit hook can't be taken away, so None makes it deaf."""


def _heard(event: str, args: tuple[Any, ...]) -> None:
    found = _watchers[-1] if _watchers else None
    if found is None:
        return
    if event in REACHING_OUT:
        found.append(f"it reaches out of its process: {event} {args[0] if args else ''}".rstrip())
    elif event == "open" and _writes(args):
        found.append(f"it writes a file: {args[0]}")


def _writes(args: tuple[Any, ...]) -> bool:
    """Whether `open` was asked for writing; bytecode that imports leave behind does not count."""
    flags = args[2] if len(args) > 2 and isinstance(args[2], int) else 0
    return bool(flags & (os.O_WRONLY | os.O_RDWR)) and "__pycache__" not in str(args[0])
