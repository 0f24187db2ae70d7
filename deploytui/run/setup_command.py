"""`setup-engine`: what is checked before, made, and said after."""

import shutil
import signal
import sys
from collections.abc import AsyncIterator

import anyio
from anyio import open_signal_receiver

from deploytui.check.doctor_engines import EngineFound, default_place, engine_in
from deploytui.check.environments import Device, EngineEnvironment, read_environment
from deploytui.errors import DeployError, UsageError
from deploytui.profile.places import user_path
from deploytui.run.setup_make import make
from deploytui.run.setup_place import Place, check_space, claimed, restore, unwritable
from deploytui.run.setup_recipes import Recipe, recipe_of
from deploytui.run.setup_text import Teller, begin_text, made_text
from deploytui.session.speech import tell
from deploytui.telemetry.nvml import read_gpus

INTERRUPTED = 130
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def setup_engine(name: str, *, python: str | None, force: bool, anyway: bool) -> int:
    """Make the environment of that name, or say that it is there; 0, or 130 when it was interrupted."""
    recipe = recipe_of(name)
    base = _interpreter(python)
    with claimed(name) as (place, lock):
        restore(place)
        made = None if force else read_environment(place.folder)
        if made is None:
            gpu = bool(read_gpus().gpus)
            check_worth(recipe, gpu=gpu, anyway=anyway)
            check_programs(recipe)
            check_space(recipe, place)
            made = _made(recipe, place, lock, base, gpu=gpu)
        else:
            tell(f"{name} is there already; --force makes it again.")
        if made is None:
            tell(f"Interrupted: {_left(place)}")
            return INTERRUPTED
        tell(made_text(made))
    for found in anyio.run(_engines, made, place):
        tell(engine_text(found, made.device))
    return 0


def _interpreter(asked: str | None) -> str:
    """The interpreter to make the environment with; UsageError when the one asked for is not there."""
    if asked is None:
        return sys.executable
    found = shutil.which(str(user_path(asked)))
    if found is None:
        raise UsageError(f"There is no interpreter {asked}.", fix="Name one with --python, such as python3.12.")
    return found


def check_worth(recipe: Recipe, *, gpu: bool, anyway: bool) -> None:
    """UsageError for an environment that is of no use here and costs gigabytes, unless it is wanted anyway."""
    if not recipe.gpu or gpu or anyway:
        return
    raise UsageError(
        f"{recipe.name} needs an NVIDIA GPU, and this node shows none.",
        why=read_gpus().missing or "",
        fix=f"`deploytui setup-engine {recipe.name} --anyway` makes it all the same, such as for another node.",
    )


def check_programs(recipe: Recipe) -> None:
    """DeployError when a program is missing that the build needs."""
    for names in recipe.programs:
        if not any(shutil.which(name) for name in names.split("|")):
            raise DeployError(
                f"{recipe.name} is built from source, and there is no {names.replace('|', ' or ')} on PATH.",
                fix="Install a C and C++ compiler (build-essential on Debian), then run the command again.",
            )


def _made(recipe: Recipe, place: Place, lock: int, base: str, *, gpu: bool) -> EngineEnvironment | None:
    tell(begin_text(recipe, base))
    teller = Teller()
    try:
        return anyio.run(_made_unless_stopped, recipe, place, lock, base, gpu, teller)
    except OSError as error:
        raise unwritable(place.root, error) from error
    finally:
        teller.end()


async def _made_unless_stopped(
    recipe: Recipe, place: Place, lock: int, base: str, gpu: bool, teller: Teller
) -> EngineEnvironment | None:
    """The environment; None when a signal came first."""
    made, failed = None, None
    with open_signal_receiver(*STOPS) as received:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_on, received, tasks.cancel_scope)
            try:
                made = await make(recipe, place, lock, base, gpu=gpu, tell=teller)
            except (DeployError, OSError) as error:
                failed = error  # raised below: a task group would wrap it
            tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return made


async def _cancel_on(received: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in received:
        scope.cancel()
        return


def _left(place: Place) -> str:
    kept = f"{place.name} is as it was before." if place.ready else f"nothing of {place.name} is left."
    return f"{kept} The log: {place.log}"


async def _engines(made: EngineEnvironment, place: Place) -> tuple[EngineFound, ...]:
    no_gpu = read_gpus().missing
    looks = [(str(place.python), name) for name in made.engines]
    return tuple([await engine_in(python, name, device=made.device, no_gpu=no_gpu) for python, name in looks])


def engine_text(found: EngineFound, device: Device) -> str:
    """Whether a candidate could be launched, and how it finds the environment."""
    known = f"{found.title} {found.version or ''}".strip()
    if found.failure is not None:
        why = found.failure
        return f"{known}: not usable here. {' '.join(part for part in (why.what, why.why, why.fix) if part)}"
    by_itself = default_place(found.engine, device=device) == found.python
    how = "a candidate finds it by itself" if by_itself else f'name it in the candidate: python = "{found.python}"'
    return f'{known}: usable, engine = "{found.engine}"; {how}.'
