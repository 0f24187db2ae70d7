"""Make an engine environment: a venv, the engine by the ordinary package client, and last the record of it."""

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import anyio.to_thread
import msgspec

from deploytui.check.environments import READY, EngineEnvironment
from deploytui.errors import DeployError
from deploytui.run.setup_ask import Installed, ask
from deploytui.run.setup_failures import not_made
from deploytui.run.setup_place import Place, remove, restore, set_aside, size_of
from deploytui.run.setup_recipes import Recipe, Step, packages_of
from deploytui.run.setup_step import Moment, run_step

PIP = ("-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass
class Making:
    """An environment while it is made."""

    recipe: Recipe
    place: Place
    lock: int
    base: str
    """The interpreter it is made with."""
    gpu: bool
    tell: Callable[[Moment], None]
    began: float = field(default_factory=time.monotonic)
    step: int = 0
    torch: str | None = None
    """The version of the first step's torch, where it must stay."""

    async def run(self, title: str, *argv: str) -> None:
        """One step; DeployError when it fails."""
        self.step += 1
        self._tell(title, "", await anyio.to_thread.run_sync(size_of, self.place.folder, self.place.temporary))
        code, said = await run_step(argv, self.place, self.lock, lambda package, size: self._tell(title, package, size))
        if code != 0:
            raise not_made(self.place, title, code, said, self.base)

    def _tell(self, title: str, package: str, size: int) -> None:
        steps = len(self.recipe.steps) + 1
        elapsed = time.monotonic() - self.began
        moment = Moment(step=self.step, steps=steps, title=title, package=package, elapsed_s=elapsed, bytes=size)
        self.tell(moment)


async def make(
    recipe: Recipe, place: Place, lock: int, base: str, *, gpu: bool, tell: Callable[[Moment], None]
) -> EngineEnvironment:
    """The finished environment; on an error or when it is cancelled the place is as it was, but for the log."""
    making = Making(recipe, place, lock, base, gpu, tell)
    place.log.unlink(missing_ok=True)
    try:
        set_aside(place)
        await making.run("environment", base, "-m", "venv", str(place.folder))
        for step in recipe.steps:
            await _install(making, step)
        remove(place.temporary)
        environment = await _finished(making)
        _write(place, environment)
    finally:
        restore(place)
    return environment


async def _install(making: Making, step: Step) -> None:
    await making.run(step.title, str(making.place.python), *PIP, *await _arguments(making, step))
    if not making.recipe.keep_torch:
        return
    installed = await ask(making.place, "torch")
    torch = installed.version("torch")
    if making.torch is None:
        if making.recipe.cpu_torch and installed.torch_cuda is not None:
            raise _not_for_cpu(making, installed)
        making.torch = torch
        _constraints(making.place).write_text(f"torch=={torch}\n", encoding="utf-8")
    elif torch != making.torch:
        raise _other_torch(making, torch)


async def _arguments(making: Making, step: Step) -> Sequence[str]:
    """What the package client is asked for in this step."""
    held = ("-c", str(_constraints(making.place))) if making.torch else ()
    packages = packages_of(step, gpu=making.gpu)
    if not step.needs_of:
        return (*held, *(() if step.deps else ("--no-deps",)), *packages)
    wanted = wanted_by(await ask(making.place, step.needs_of), step.needs_of, step.without)
    listed = making.place.temporary / "needs.txt"
    listed.write_text("".join(f"{line}\n" for line in (*packages, *wanted)), encoding="utf-8")
    return (*held, "-r", str(listed))


def wanted_by(installed: Installed, name: str, without: str) -> tuple[str, ...]:
    """What an installed distribution asks for, as it says it; extras and what is to be left out are not in it."""
    return tuple(line for line in installed.requires.get(name, ()) if not _left_out(line, without))


def _left_out(requirement: str, without: str) -> bool:
    if re.search(r";.*\bextra\s*==", requirement):
        return True
    name = _NAME.match(requirement)
    return bool(without) and name is not None and name.group().lower().startswith(without)


def _constraints(place: Place) -> Path:
    return place.temporary / "constraints.txt"


def _not_for_cpu(making: Making, installed: Installed) -> DeployError:
    return DeployError(
        f"{making.recipe.name} could not be set up: it needs the CPU build of torch, and pip found another.",
        why=f"torch {installed.version('torch')} is built for CUDA {installed.torch_cuda}.",
        fix="Add the place of torch's CPU wheels to pip's configuration (extra-index-url or find-links).",
    )


def _other_torch(making: Making, torch: str | None) -> DeployError:
    return DeployError(
        f"{making.recipe.name} could not be set up: another torch took the place of the one it is made for.",
        why=f"torch {making.torch} became {torch or 'none'}.",
        fix=f"See which package asked for it: {making.place.log}",
    )


async def _finished(making: Making) -> EngineEnvironment:
    installed = await ask(making.place, *making.recipe.main)
    size = await anyio.to_thread.run_sync(size_of, making.place.folder)
    return EngineEnvironment(
        name=making.recipe.name,
        engines=making.recipe.engines,
        gpu=making.recipe.gpu,
        versions={name: installed.version(name) for name in making.recipe.main},
        seconds=time.monotonic() - making.began,
        bytes=size,
        python=installed.python,
        date=datetime.now().astimezone().isoformat(timespec="seconds"),
    )


def _write(place: Place, environment: EngineEnvironment) -> None:
    """The record, whole or not at all, after everything else is on disk."""
    new = place.folder / f".{READY}"
    with new.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(environment), indent=2))
        file.flush()
        os.fsync(file.fileno())
    new.replace(place.folder / READY)
