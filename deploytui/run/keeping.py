"""An engine process and the keeper that stands between it and the runner."""

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Process
from msgspec import Struct

from deploytui.run.children import child, lines, marked, tell, unwrapped
from deploytui.session.secrets import secret_values
from deploytui.telemetry.cgroup import oom_kills

KEEPER = Path(__file__).parent.parent / "host" / "keeper.py"
STOP_S = 15.0
"""How long a keeper may take for its own clean-up beyond the engine's grace [s]."""


class Said(Struct, frozen=True):
    """A line of the keeper."""

    event: str
    pid: int | None = None
    code: int | None = None
    signal: int | None = None
    errno: int | None = None
    message: str = ""
    survivors: tuple[int, ...] = ()


@dataclass
class Kept:
    """A running engine: what its keeper said of it so far."""

    process: Process
    pid: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    spawn_error: str = ""
    survivors: tuple[int, ...] = ()
    oom_kills: int | None = field(default_factory=oom_kills)
    """Of our control group before the engine started; None where nothing tells."""
    started: anyio.Event = field(default_factory=anyio.Event)
    exited: anyio.Event = field(default_factory=anyio.Event)
    gone: anyio.Event = field(default_factory=anyio.Event)
    listening: anyio.CancelScope = field(default_factory=lambda: anyio.CancelScope(shield=True))

    @property
    def alive(self) -> bool:
        """Whether the engine's main process was started and has not ended."""
        return self.started.is_set() and not self.exited.is_set()

    def hear(self, said: Said) -> None:
        """Take in one line of the keeper."""
        match said.event:
            case "started":
                self.pid = said.pid
                self.started.set()
            case "failed":
                self.spawn_error = said.message
                self.end()
            case "exited":
                self.exit_code, self.exit_signal = said.code, said.signal
                self.exited.set()
            case "gone":
                self.survivors = said.survivors
                self.end()

    def end(self) -> None:
        """Nothing more will come."""
        for event in (self.started, self.exited, self.gone):
            event.set()


@asynccontextmanager
async def kept(
    argv: tuple[str, ...],
    *,
    env: Mapping[str, str],
    session: str,
    folder: Path,
    grace_s: float,
    hurry: anyio.Event,
    secrets: Sequence[str] = (),
) -> AsyncIterator[Kept]:
    """An engine that lives inside the block; at its end it is stopped nicely, or at once when `hurry` is set.

    `env` is the engine's alone: a library path meant for it must not reach the keeper. Its log holds a sign in the
    place of `secrets`, and of those that its environment holds by their names.
    """
    order = {
        "argv": argv,
        "env": dict(env),
        "cwd": None,
        "log": str(folder / "engine.log"),
        "tail": str(folder / "engine.tail.log"),
        "grace_s": grace_s,
        "secrets": (*secrets, *secret_values(env)),
    }
    keeper = (sys.executable, "-I", "-S", str(KEEPER))
    with unwrapped():
        async with (
            child(keeper, env=marked(session), errors=folder / "keeper.log", grace_s=STOP_S) as process,
            anyio.create_task_group() as group,
        ):
            engine = Kept(process)
            await tell(process, json.dumps(order).encode())  # spells out the bytes of names that are no UTF-8
            group.start_soon(_listen, engine)
            try:
                yield engine
            finally:
                with anyio.CancelScope(shield=True):
                    await _stop(engine, grace_s, hurry)


async def _listen(engine: Kept) -> None:
    """Hear the keeper to its end; shielded, since its last words come after a cancellation."""
    with engine.listening:
        async for line in lines(engine.process):
            engine.hear(msgspec.json.decode(line, type=Said))
        engine.end()


async def _stop(engine: Kept, grace_s: float, hurry: anyio.Event) -> None:
    await tell(engine.process, b'{"do":"stop"}')
    with anyio.move_on_after(grace_s + STOP_S):
        async with anyio.create_task_group() as group:
            group.start_soon(_hurried, engine, hurry)
            await engine.gone.wait()
            group.cancel_scope.cancel()
    engine.listening.cancel()


async def _hurried(engine: Kept, hurry: anyio.Event) -> None:
    await hurry.wait()
    await tell(engine.process, b'{"do":"kill"}')
