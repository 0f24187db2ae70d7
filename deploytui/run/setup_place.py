"""Where an environment is made: its folder, the right to make it, the space for it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploytui.check.environments import READY
from deploytui.engine.environments import VARIABLE, engines_dir
from deploytui.errors import DeployError
from deploytui.run.exclusive import NO_LOCKS
from deploytui.run.setup_recipes import Recipe
from deploytui.units import GIB

SPARE_BYTES = 512 << 20


@dataclass(frozen=True)
class Place:
    """The folder of one environment, and what lies beside it."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """The environment."""
        return self.root / self.name

    @property
    def mark(self) -> Path:
        """Lies in every folder that a set-up has begun, so that no other is ever deleted."""
        return self.folder / ".setup-engine"

    @property
    def old(self) -> Path:
        """The finished environment that a new one is to take the place of."""
        return self.root / f".{self.name}.old"

    @property
    def temporary(self) -> Path:
        """What the package client unpacks and builds in; on the same disk, and gone at the end."""
        return self.root / f".{self.name}.tmp"

    @property
    def log(self) -> Path:
        """Everything the package client said, kept whatever came of it."""
        return self.root / f"{self.name}.log"

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    @property
    def ready(self) -> bool:
        """Whether the environment was finished."""
        return (self.folder / READY).is_file()


@contextmanager
def claimed(name: str) -> Iterator[tuple[Place, int]]:
    """The place of an environment and the descriptor of its lock, which is held for the block.

    Whoever inherits the descriptor holds the lock too: what a killed set-up started keeps the next one out while it
    still writes. DeployError when the folder can't be written or someone is at work on it.
    """
    place = Place(engines_dir(), name)
    path = place.root / f".{name}.lock"
    try:
        place.root.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(place.root, error) from error
    try:
        _take(lock, place)
        yield place, lock
    finally:
        os.close(lock)


def _take(lock: int, place: Place) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        who = os.pread(lock, 64, 0).decode("ascii", "replace").strip()
        raise DeployError(
            f"{place.name} is being set up already.",
            why=f"Process {who} began it, and it or what it started is still at work." if who else "",
            fix="Wait until it has ended.",
        ) from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise unwritable(place.root, error) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def unwritable(folder: Path, error: OSError) -> DeployError:
    """The folder of environments can't be used."""
    fix = f"Set {VARIABLE} to a folder you may write."
    return DeployError(f"The folder of engine environments {folder} can't be written.", why=str(error), fix=fix)


def check_space(recipe: Recipe, place: Place) -> None:
    """DeployError when the disk has no room for the environment and for what is fetched and unpacked meanwhile."""
    free = shutil.disk_usage(place.root).free
    needed = recipe.installed_bytes + 2 * recipe.download_bytes + SPARE_BYTES
    if free < needed:
        raise DeployError(
            f"Too little space for {recipe.name} in {place.root}.",
            why=f"{free / GIB:.1f} GiB are free, about {needed / GIB:.1f} GiB are needed while it is made.",
            fix=f"Free some space, or set {VARIABLE} to a folder on another disk.",
        )


def restore(place: Place) -> None:
    """Undo what a killed set-up left: the half-made goes, a finished environment it had set aside comes back.

    DeployError when something lies there that no set-up has made: that is not ours to delete.
    """
    remove(place.temporary)
    if not place.ready:
        if place.folder.exists() and not place.mark.is_file():
            raise _not_ours(place)
        remove(place.folder)
        if place.old.exists():
            place.old.rename(place.folder)
    remove(place.old)


def set_aside(place: Place) -> None:
    """Make room for a new environment; the finished one that is there is kept until the new one is finished."""
    if place.ready:
        place.folder.rename(place.old)
    place.folder.mkdir()
    place.mark.touch()
    place.temporary.mkdir()


def _not_ours(place: Place) -> DeployError:
    return DeployError(
        f"{place.folder} is there, and setup-engine has not made it, so it is left as it is.",
        fix=f"Use it as it is, with python in a candidate; or move it away, or set {VARIABLE} to another folder.",
    )


def remove(folder: Path) -> None:
    """Delete a folder, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)


def size_of(*folders: Path) -> int:
    """What the files below the folders take on disk [bytes]; what vanishes meanwhile does not count."""
    return sum(_size(str(folder)) for folder in folders)


def _size(folder: str) -> int:
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    inside = _size(entry.path) if entry.is_dir(follow_symlinks=False) else 0
                    total += inside or entry.stat(follow_symlinks=False).st_blocks * 512
                except OSError:
                    continue
    except OSError:
        return total
    return total
