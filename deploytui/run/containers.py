"""Containers of ours at the runtime: asked and removed by name, also those that a dead session left behind."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct

from deploytui.engine.container import container_name, image_digests, presence, removal
from deploytui.profile.schema import Container
from deploytui.session.leftovers import dead_sessions

NOTE = "container.json"
"""Written beside a candidate's log while its container may be there: what a dead session left is found by it."""
ASK_S = 20.0
"""How long a runtime may take to answer [s]."""
REMOVE_S = 60.0
"""How long a runtime may take to end and remove a container [s]."""
APPEAR_S = 0.5
"""Between two looks whether a container runs [s]."""


class Named(Struct, frozen=True):
    """A container of ours."""

    container: Container
    name: str


Done = subprocess.CompletedProcess[bytes] | None
"""How a call of a runtime went; None when it could not be made, or did not end in time."""


async def ask(argv: tuple[str, ...]) -> str | None:
    """What a runtime prints; None when it fails or does not answer in time."""
    done = await _call(argv, ASK_S)
    return done.stdout.decode(errors="replace").strip() if done is not None and done.returncode == 0 else None


async def _call(argv: tuple[str, ...], seconds: float) -> Done:
    with anyio.move_on_after(seconds), suppress(OSError):
        return await anyio.run_process(argv, check=False, start_new_session=True)
    return None


def _is_absent(looked: Done) -> bool:
    """Whether a look for a container says that there is none; a runtime that can't be asked says nothing."""
    return looked is not None and looked.returncode != 0 and b"no such" in looked.stderr.lower()


async def image_name(container: Container) -> str:
    """The image with its digest, where the runtime tells one; the id of an image that was never in a registry."""
    said = await ask(image_digests(container)) if container.runtime != "apptainer" else None
    return _digest(said, container.image) if said else container.image


def _digest(said: str, image: str) -> str:
    identity, _, listed = said.partition(" ")
    with suppress(msgspec.DecodeError):
        digests = msgspec.json.decode(listed, type=list[str] | None) or []
        if digests:
            return f"{image}@{digests[0].rpartition('@')[2]}" if "@" not in image else image
    return f"{image} ({identity})" if identity else image


async def running_pid(named: Named) -> int | None:
    """The first process of the container as this node numbers it; None while it does not run or can't be asked."""
    said = await ask(presence(named.container, named.name))
    return int(said) if said and said.isdecimal() and int(said) > 0 else None


async def appeared(named: Named) -> int:
    """Wait for the container to run; its first process."""
    while True:
        if (pid := await running_pid(named)) is not None:
            return pid
        await anyio.sleep(APPEAR_S)


@asynccontextmanager
async def removed_after(named: Named | None, folder: Path) -> AsyncIterator[list[str]]:
    """Whatever happens inside, no container of that name is there afterwards; what can't be removed is listed."""
    left: list[str] = []
    if named is None:
        yield left
        return
    await _remove(named)
    (folder / NOTE).write_bytes(msgspec.json.encode(named))
    try:
        yield left
    finally:
        with anyio.CancelScope(shield=True):
            if await _remove(named):
                (folder / NOTE).unlink(missing_ok=True)
            else:
                left.append(named.name)


async def _remove(named: Named) -> bool:
    """End and remove it; False when it is there after that, or may be."""
    argv = removal(named.container, named.name)
    if argv is None:
        return True
    await _call(argv, REMOVE_S)
    return _is_absent(await _call(presence(named.container, named.name), ASK_S))


def remove_left(state: Path) -> list[str]:
    """Remove the containers that dead sessions left behind; their names. Blocks."""
    notes = list(state.glob(f"*/candidates/*/{NOTE}"))
    dead = set(dead_sessions(state)) if notes else set()
    return [name for note in notes if (session := note.parents[2].name) in dead for name in _removed(note, session)]


def _removed(note: Path, session: str) -> Iterator[str]:
    named = _noted(note, session)
    if named is None or (argv := removal(named.container, named.name)) is None:
        return
    look = presence(named.container, named.name)
    if _has_done(_call_now(look)) and _has_done(_call_now(argv)):
        yield named.name
    if _is_absent(_call_now(look)):
        note.unlink(missing_ok=True)


def _noted(note: Path, session: str) -> Named | None:
    """What a note says, if it is readable and names a container of its own session: no other one is touched."""
    try:
        named = msgspec.json.decode(note.read_bytes(), type=Named)
    except (OSError, msgspec.DecodeError):
        return None
    return named if named.name.startswith(container_name(session, "")) else None


def _has_done(done: Done) -> bool:
    return done is not None and done.returncode == 0


def _call_now(argv: tuple[str, ...]) -> Done:
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=REMOVE_S, check=False, start_new_session=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
