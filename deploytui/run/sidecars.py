"""Bulk files beside the journal: synced, hashed, referenced."""

import hashlib
import os
from pathlib import Path

from deploytui.record.facts import Sidecar

BLOCK = 1 << 20


def sidecar(path: Path, root: Path, count: int) -> Sidecar:
    """The reference to a file of `count` records, once it is on disk."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        os.fsync(file.fileno())
        while block := file.read(BLOCK):
            digest.update(block)
    return Sidecar(path=str(path.relative_to(root)), bytes=path.stat().st_size, count=count, sha256=digest.hexdigest())


def write_synced(path: Path, lines: list[bytes]) -> None:
    """A new file of whole lines, on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(line + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
