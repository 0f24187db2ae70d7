"""Whole runs of deploytui on the paced server, without the screen and with it."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.cores import on_cores
from benchmarks.processes import Watch
from benchmarks.server import Server
from benchmarks.terminal import started

LOOK_S = 0.005
SETTLE_S = 1.0
LIMIT_S = 180.0
PROFILE = """
schema = 1
name = "bench"
load_workers = {workers}
timeouts = {{ request = 300 }}
[workload]
prompt_tokens = 32
output_tokens = {tokens}
requests = {requests}
load = {{ kind = "closed", concurrency = {streams} }}
warmup_requests = 0
repeats = 1
[[candidates]]
name = "paced"
engine = "openai"
base_url = "{url}"
"""


@dataclass(frozen=True)
class Load:
    """What a session asks of the server."""

    requests: int = 1000
    streams: int = 1000
    tokens: int = 128
    workers: int = 1


@dataclass
class Ran:
    """A run that is over."""

    folder: Path
    exec_ns: int
    watch: Watch
    exit_ns: int = 0
    written_ns: dict[str, int] = field(default_factory=dict)
    """When the journal first held an event of each kind."""


@dataclass
class _Journal:
    """Notes when each kind of event is first seen in the session's journal."""

    state: Path
    seen_ns: dict[str, int]
    path: Path | None = None
    read: int = 0

    def look(self) -> None:
        if self.path is None:
            self.path = next(self.state.glob("*/journal.jsonl"), None)
        if self.path is None or self.path.stat().st_size == self.read:
            return
        with self.path.open("rb") as file:
            file.seek(self.read)
            block = file.read().rpartition(b"\n")[0]
        now = time.monotonic_ns()
        self.read += len(block) + 1 if block else 0
        for line in block.splitlines():
            kind = line.partition(b'"kind":"')[2].partition(b'"')[0].decode()
            self.seen_ns.setdefault(kind, now)


def run_headless(server: Server, on: tuple[int, ...], folder: Path, load: Load, *, memory: bool = False) -> Ran:
    """`deploytui run` in the foreground."""
    profile, state = _written(server, folder, load)
    argv = [sys.executable, "-m", "deploytui", "run", str(profile), "--state-dir", str(state), "--exit-zero"]
    watch, log = Watch(server.pid, memory=memory), (folder / "run.log").open("wb")
    with log, on_cores(*on):
        exec_ns = time.monotonic_ns()
        pid = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True).pid
    ran = Ran(state, exec_ns, watch)
    journal = _Journal(state, ran.written_ns)
    _look_until(lambda: pid in watch.reap(), watch, journal)
    return _finished(ran, journal)


def run_on_screen(server: Server, core: int, folder: Path, load: Load, *, memory: bool = False) -> Ran:
    """`deploytui PROFILE` in a terminal of 120×36; the run is started with its key, and left when it has ended."""
    profile, state = _written(server, folder, load)
    argv = [sys.executable, "-m", "deploytui", "open", str(profile), "--state-dir", str(state)]
    watch = Watch(server.pid, memory=memory)
    with on_cores(core):
        exec_ns = time.monotonic_ns()
        pid, terminal = started(argv)
    ran = Ran(state, exec_ns, watch)
    journal, screen = _Journal(state, ran.written_ns), _Screen(terminal)
    try:
        for sign in (b"paced", b"Start a run"):  # the plan, then the question whether to run it
            _look_until(partial(screen.shows, sign), watch, journal)
            screen.press(b"r")
        _look_until(lambda: screen.shows(b"") and "session_ended" in ran.written_ns, watch, journal)
        told = time.monotonic() + SETTLE_S  # else it asks whether to quit: it has not drawn the end yet
        _look_until(lambda: screen.shows(b"") and time.monotonic() > told, watch, journal)
        screen.press(b"q")
        _look_until(lambda: screen.shows(b"") and pid in watch.reap(), watch, journal)
    finally:
        os.close(terminal)
    return _finished(ran, journal)


@dataclass
class _Screen:
    """What a terminal was sent since the last key."""

    terminal: int
    shown: bytes = b""

    def shows(self, sign: bytes) -> bool:
        """Take in what was written; whether `sign` is in it."""
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                self.shown += os.read(self.terminal, 65536)
            except OSError:
                break
        return sign in self.shown

    def press(self, key: bytes) -> None:
        """Press a key."""
        self.shown = b""
        with suppress(OSError):
            os.write(self.terminal, key)


def _look_until(over: Callable[[], bool], watch: Watch, journal: _Journal, limit_s: float = LIMIT_S) -> None:
    last = time.monotonic() + limit_s
    while not over():
        if time.monotonic() > last:
            for pid in watch.alive():
                os.kill(pid, 9)
            raise RuntimeError(f"a run did not end within {limit_s:g} s")
        watch.look()
        journal.look()
        time.sleep(LOOK_S)


def _finished(ran: Ran, journal: _Journal) -> Ran:
    """The run once the last of its processes has ended too."""
    ran.exit_ns = time.monotonic_ns()
    _look_until(lambda: bool(ran.watch.reap() or True) and not ran.watch.alive(), ran.watch, journal)
    ran.watch.reap()
    journal.look()
    if journal.path is None or "measured" not in ran.written_ns:
        log = ran.folder.parent / "run.log"
        raise RuntimeError(f"a run measured nothing: {log.read_text()[-500:] if log.exists() else 'no word of it'}")
    ran.folder = journal.path.parent
    return ran


def _written(server: Server, folder: Path, load: Load) -> tuple[Path, Path]:
    folder.mkdir(parents=True)
    profile, state = folder / "bench.toml", folder / "state"
    text = PROFILE.format(url=server.url, **{name: getattr(load, name) for name in load.__dataclass_fields__})
    profile.write_text(text)
    return profile, state
