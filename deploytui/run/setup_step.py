"""One program of a set-up: in a session of its own, its words kept, its progress told, gone when it is cancelled."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import DEVNULL, STDOUT

import anyio
import anyio.to_thread
from anyio.abc import Process
from msgspec import Struct

from deploytui.artifact.ending import end_group
from deploytui.run.setup_place import Place, size_of

POLL_S = 0.5
IDLE_SHARE = 15
"""Looking how large it is may take this part of the time."""
GRACE_S = 3.0
SAID_LIMIT = 1 << 22
"""How much of what was said by the end of a log is read [bytes]."""

_WORKING = re.compile(
    r"^\s*(?:Collecting|Downloading|Using cached|Processing|Building wheel for|Created wheel for"
    r"|Preparing metadata for|Installing collected packages:?|Installing build dependencies) *(?P<what>\S*)",
    re.MULTILINE,
)
_INSTALLING = "Installing collected packages"
_NOT_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


class Moment(Struct, frozen=True, kw_only=True):
    """How far a set-up is."""

    step: int
    """From 1."""
    steps: int
    title: str
    package: str
    """What is fetched, built or installed just now; empty when that is not known."""
    elapsed_s: float
    """Since the set-up began [s]."""
    bytes: int
    """On disk so far, with what is temporary."""


Progress = Callable[[str, int], None]
"""Told what is worked on and how much is on disk [bytes]."""


async def run_step(argv: Sequence[str], place: Place, lock: int, progress: Progress) -> tuple[int, list[str]]:
    """The exit status of the program and what it said; the lock is its own too, so it holds while the program lives."""
    with place.log.open("ab") as output:
        output.write(f"$ {' '.join(argv)}\n".encode())
        output.flush()
        start = output.tell()
        process = await anyio.open_process(
            argv,
            stdin=DEVNULL,
            stdout=output,
            stderr=STDOUT,
            env=environment(place),
            start_new_session=True,
            pass_fds=(lock,),
        )
    try:
        code = await _watched(process, place, start, progress)
    finally:
        await end_group(process, GRACE_S)
    return code, _said(place.log, start).splitlines()


def environment(place: Place) -> dict[str, str]:
    """Ours, without what would lead an interpreter elsewhere, with temporary files beside the environment."""
    ours = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    return {**ours, "TMPDIR": str(place.temporary), "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}


async def _watched(process: Process, place: Place, start: int, progress: Progress) -> int:
    pause = POLL_S
    while True:
        with anyio.move_on_after(pause):
            return await process.wait()
        began = anyio.current_time()
        size = await anyio.to_thread.run_sync(size_of, place.folder, place.temporary)
        pause = max(POLL_S, IDLE_SHARE * (anyio.current_time() - began))
        progress(working_on(_said(place.log, start)), size)


def working_on(said: str) -> str:
    """What the package client works on, from what it said so far."""
    found = list(_WORKING.finditer(said))
    if not found:
        return ""
    last = found[-1]
    return "installing" if _INSTALLING in last.group() else _package(last["what"].rpartition("/")[2])


def _package(file: str) -> str:
    """Name and version, without what a wheel's name says of interpreter and platform."""
    file = file.removesuffix(".metadata").removesuffix(".tar.gz")
    return " ".join(file.split("-")[:2]) if file.endswith(".whl") else file


def _said(log: Path, start: int) -> str:
    with log.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(start, end - SAID_LIMIT))
        return file.read().decode("utf-8", "replace")
