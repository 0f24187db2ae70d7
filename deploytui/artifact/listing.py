"""The files of a model's folder, bounded: no hidden folders, no links that lead round in circles."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from deploytui.artifact.facts import FileFact

MOST_FILES = 5000
DEEPEST = 4
_SHA256 = re.compile(r"^[0-9a-f]{64}$")


def list_files(folder: Path) -> tuple[FileFact, ...]:
    """All files, sorted; with the checksum that a hub's client names a file's content by, where there is one."""
    return tuple(sorted(_facts(folder), key=lambda fact: fact.path))


def _facts(folder: Path) -> Iterator[FileFact]:
    left = MOST_FILES
    for root, folders, names in os.walk(folder):
        here = Path(root)
        depth = len(here.relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and depth < DEEPEST)
        for name in sorted(names):
            left -= 1
            if left < 0:
                return
            if (fact := file_fact(here / name, folder)) is not None:
                yield fact


def file_fact(path: Path, folder: Path) -> FileFact | None:
    """One file; None when it is not there or is none."""
    try:
        told = path.stat()
        target = path.readlink().name if path.is_symlink() else ""
    except OSError:
        return None
    if not path.is_file():
        return None
    known = target if _SHA256.match(target) else None
    return FileFact(path=str(path.relative_to(folder)), bytes=told.st_size, sha256=known, declared=known is not None)
