"""The runner without a terminal: it leaves its parent before it imports anything of weight."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from deploytui.errors import DeployError


class Said(NamedTuple):
    """The child's first words: status 0 and `ready PATH`, or the status and text of an error."""

    status: int
    text: str


def detached(begin: Callable[[], tuple[Path, Callable[[], int]]]) -> Said:
    """Fork; the child calls `begin`, says which session is ready, and runs it in a session of its own.

    The parent returns what the child said; the child never returns.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(begin, writing)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as said:
        words = said.read().strip()
    if words.startswith("ready "):
        return Said(0, words)
    os.waitpid(pid, 0)
    status, _, text = words.partition(" ")
    return Said(int(status), text) if status.isdigit() else Said(1, "The runner ended before it was ready.")


def _child(begin: Callable[[], tuple[Path, Callable[[], int]]], writing: int) -> None:
    """Become the runner; ends the process whatever happens."""
    status = 1
    try:
        os.setsid()
        folder, run = begin()
        _leave_terminal(folder / "runner.log")
        os.write(writing, f"ready {folder}\n".encode())
        os.close(writing)
        status = run()
    except BaseException as error:  # noqa: BLE001 - the last frame of this process: its parent must hear of anything
        _last_words(writing, error)
    finally:
        os._exit(status)


def _last_words(writing: int, error: BaseException) -> None:
    text = error.text() if isinstance(error, DeployError) else f"{type(error).__name__}: {error}"
    status = error.exit_code if isinstance(error, DeployError) else 1
    try:
        os.write(writing, f"{status} deploytui: {text}\n".encode())
    except OSError:
        traceback.print_exception(error)
    sys.stderr.flush()


def _leave_terminal(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
