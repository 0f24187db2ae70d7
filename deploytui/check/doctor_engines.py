"""Engines on this node: where a candidate would find each of them, and whether it could be launched there."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
from msgspec import Struct
from msgspec.structs import replace

from deploytui.check.environments import Device, EngineEnvironment
from deploytui.check.probe import run_probe
from deploytui.engine.registry import engine_names, load_engine
from deploytui.errors import ProfileError
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure

PROBES_AT_ONCE = 4


class Look(NamedTuple):
    """Where to look for which engine."""

    python: str | None
    """None is where a candidate that names no interpreter would run."""
    engine: str
    environment: str | None = None
    device: Device | None = None
    """What a candidate would ask for; None leaves it open."""


class EngineFound(Struct, frozen=True, kw_only=True):
    """One engine in one interpreter."""

    engine: str
    title: str
    python: str
    found: bool
    version: str | None = None
    usable: bool = False
    """Whether a candidate could be launched with it here."""
    failure: Failure | None = None
    """Why not; None when it is usable."""
    program: str | None = None
    """The binary, for engines that are not a package."""
    environment: str | None = None
    """What `setup-engine` calls the environment of that interpreter; None when it made none of it."""


async def found_engines(
    pythons: Sequence[str], made: Sequence[tuple[Path, EngineEnvironment]], no_gpu: str | None
) -> tuple[EngineFound, ...]:
    """Every engine where a candidate would run it by itself and in each named interpreter, then those of each
    environment that `setup-engine` made; none of them twice. `no_gpu` is why there is no GPU, None when there is one.
    """
    looks = list(_looks(pythons, made))
    found: dict[Look, EngineFound] = {}
    room = anyio.CapacityLimiter(PROBES_AT_ONCE)

    async def look(at: Look) -> None:
        async with room:
            seen = await engine_in(at.python, at.engine, device=at.device, no_gpu=no_gpu)
            found[at] = replace(seen, environment=at.environment)

    async with anyio.create_task_group() as tasks:
        for at in looks:
            tasks.start_soon(look, at)
    return tuple(found[at] for at in looks)


def _looks(pythons: Sequence[str], made: Sequence[tuple[Path, EngineEnvironment]]) -> Iterator[Look]:
    inside = {str(folder / "bin" / "python"): environment for folder, environment in made}
    for name in engine_names():
        environment = inside.get(default_place(name))
        if environment is None or name not in environment.engines:
            yield Look(None, name)
    for python in dict.fromkeys(pythons):
        yield from (Look(python, name) for name in engine_names())
    for python, environment in inside.items():
        if python not in pythons:
            yield from (Look(python, name, environment.name, environment.device) for name in environment.engines)


def default_place(name: str, python: str | None = None, device: Device | None = None) -> str:
    """The interpreter or program that a candidate would run in."""
    try:
        probe = load_engine(name).probe(Candidate(name="doctor", engine=name, python=python, device=device))
    except ProfileError:
        probe = None
    return probe.argv[0] if probe is not None else python or sys.executable


async def engine_in(
    python: str | None, name: str, *, device: Device | None = None, no_gpu: str | None = None
) -> EngineFound:
    """One engine in one interpreter, None where a candidate that names none would run.

    An adapter that can't be loaded is an engine that is not usable.
    """
    where = python or default_place(name, python)
    try:
        engine = load_engine(name)
    except ProfileError as error:
        failure = Failure(kind="broken_install", what=error.what, why=error.why, fix=error.fix)
        return EngineFound(engine=name, title=name, python=where, found=False, failure=failure)
    candidate = Candidate(name="doctor", engine=name, python=python, device=device)
    probe = engine.probe(candidate)
    if probe is None:
        return EngineFound(engine=name, title=engine.title, python=where, found=True, usable=True)
    probed = await run_probe(probe)
    failure_ = engine.judge(candidate, probed) or _without_gpu(engine.title, device, no_gpu)
    return EngineFound(
        engine=name,
        title=engine.title,
        python=where,
        found=probed.found,
        version=probed.version,
        usable=failure_ is None,
        failure=failure_,
        program=probed.detail.get("program"),
    )


def _without_gpu(title: str, device: Device | None, no_gpu: str | None) -> Failure | None:
    """The failure of an engine for GPUs on a node that has none, which the engine itself need not know."""
    if device != "cuda" or no_gpu is None:
        return None
    return Failure(
        kind="wrong_device",
        what=f"{title} is there and runs on an NVIDIA GPU, and this node shows none.",
        why=no_gpu,
        fix="Use it on a node with a GPU.",
    )
