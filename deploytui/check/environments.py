"""The engine environments on this node: what `setup-engine` wrote of each when it was finished."""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from deploytui.engine.environments import engines_dir

READY = "ready.json"
"""Written last: a folder without it does not count, however much lies in it."""


Device = Literal["cuda", "cpu"]


class EngineEnvironment(Struct, frozen=True, kw_only=True):
    """An environment that was finished."""

    name: str
    """Of the recipe it was made by."""
    engines: tuple[str, ...]
    """Engines it is for, by adapter name."""
    versions: dict[str, str | None]
    """Of its main packages; None where the package could not be asked."""
    seconds: float
    """How long it took to make [s]."""
    bytes: int
    """On disk when it was finished."""
    python: str
    """Version of its interpreter."""
    date: str
    """When it was finished, ISO 8601 with the zone."""
    gpu: bool = False
    """Whether it is of use only with an NVIDIA GPU."""

    @property
    def device(self) -> Device:
        """What a candidate has to ask for to be told whether the environment is of use."""
        return "cuda" if self.gpu else "cpu"

    @property
    def version(self) -> str | None:
        """Of the package that the environment was made for; None when unknown."""
        return next(iter(self.versions.values()), None)


def read_environment(folder: Path) -> EngineEnvironment | None:
    """What is known of the environment in a folder; None when it was never finished or its record can't be read."""
    try:
        return msgspec.json.decode((folder / READY).read_bytes(), type=EngineEnvironment)
    except (OSError, msgspec.DecodeError):
        return None


def found_environments() -> tuple[tuple[Path, EngineEnvironment], ...]:
    """Every finished environment with its folder, by name."""
    root = engines_dir()
    try:
        folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return ()
    read = ((folder, read_environment(folder)) for folder in folders)
    return tuple((folder, found) for folder, found in read if found is not None)
