"""What this node offers: engines in their interpreters, GPUs, CPUs, memory, the terminal, the model cache."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec import Struct

from deploytui.artifact.embedded import EMBEDDED, cached_path
from deploytui.check.doctor_engines import EngineFound, found_engines
from deploytui.check.environments import EngineEnvironment, found_environments
from deploytui.record.facts import Environment
from deploytui.telemetry.environment import read_environment
from deploytui.telemetry.host import cpu_quota, memory_limit


class Terminal(Struct, frozen=True, kw_only=True):
    """What the screen would find."""

    interactive: bool
    term: str | None
    colours: str
    """`none`, `16`, `256` or `truecolor`, as the environment promises."""
    columns: int
    lines: int
    encoding: str
    multiplexer: str | None
    """`tmux` or `screen`; None outside of one."""
    ssh: bool


class CachedModel(Struct, frozen=True, kw_only=True):
    """An embedded model, and where it is kept; None when it is still to be fetched."""

    name: str
    path: str | None
    wheel_bytes: int
    licence: str


class DoctorReport(Struct, frozen=True, kw_only=True):
    """Everything `doctor` found."""

    environment: Environment
    cpu_quota: float | None
    """CPUs' worth of time the control group may use; None without a limit."""
    memory_limit_bytes: int | None
    """None without a limit."""
    visible_devices: str | None
    """CUDA_VISIBLE_DEVICES; None when it is not set."""
    engines: tuple[EngineFound, ...]
    environments: tuple[EngineEnvironment, ...]
    """What `setup-engine` has made here."""
    terminal: Terminal
    pip: bool
    """Whether our interpreter can download the embedded model."""
    cache_dir: str
    cache_free_bytes: int | None
    models: tuple[CachedModel, ...]


async def doctor(pythons: Sequence[str], cache_dir: Path) -> DoctorReport:
    """Look at this node, at our interpreter, at each of the named ones and at the environments of `setup-engine`."""
    made = await anyio.to_thread.run_sync(found_environments)
    environment = await anyio.to_thread.run_sync(read_environment)
    engines = await found_engines(pythons, made, environment.gpu_missing)
    return DoctorReport(
        environment=environment,
        cpu_quota=cpu_quota(),
        memory_limit_bytes=memory_limit(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        engines=engines,
        environments=tuple(environment for _, environment in made),
        terminal=terminal(os.environ),
        pip=find_spec("pip") is not None,
        cache_dir=str(cache_dir),
        cache_free_bytes=_free_bytes(cache_dir),
        models=_models(cache_dir),
    )


def terminal(environment: Mapping[str, str]) -> Terminal:
    """The terminal as the environment and the streams show it."""
    columns, lines = shutil.get_terminal_size()
    return Terminal(
        interactive=sys.stdin.isatty() and sys.stdout.isatty(),
        term=environment.get("TERM"),
        colours=colours(environment),
        columns=columns,
        lines=lines,
        encoding=sys.stdout.encoding or "unknown",
        multiplexer="tmux" if "TMUX" in environment else "screen" if "STY" in environment else None,
        ssh=any(name in environment for name in ("SSH_CONNECTION", "SSH_TTY")),
    )


def colours(environment: Mapping[str, str]) -> str:
    """The colours the environment promises: `none`, `16`, `256` or `truecolor`."""
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR") or term in ("", "dumb"):
        return "none"
    if environment.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256color" in term else "16"


def _free_bytes(folder: Path) -> int | None:
    """Free space where the cache is or would be made [bytes]; None when it can't be told."""
    there = next((place for place in (folder, *folder.parents) if place.exists()), None)
    try:
        return shutil.disk_usage(there).free if there else None
    except OSError:
        return None


def _models(cache_dir: Path) -> tuple[CachedModel, ...]:
    paths = {name: cached_path(model, cache_dir) for name, model in EMBEDDED.items()}
    return tuple(
        CachedModel(
            name=name,
            path=str(paths[name]) if paths[name] else None,
            wheel_bytes=model.wheel_bytes,
            licence=model.licence,
        )
        for name, model in EMBEDDED.items()
    )
