"""Bulk files beside the journal: synced, hashed, referenced."""

import hashlib
import os
from pathlib import Path

from deploytui.record.facts import Sidecar


def sidecar(path: Path, root: Path, count: int, sha256: str | None = None, size: int | None = None) -> Sidecar:
    """The reference to a file of `count` records, once it is on disk.

    Whoever wrote, hashed and synced it knows its `sha256` and `size` [bytes]; then it is not read again, unless its
    size is another by now.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno()).st_size
        if sha256 is None or size not in (None, found):
            os.fsync(file.fileno())
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return Sidecar(path=str(path.relative_to(root)), bytes=found, count=count, sha256=sha256)


def write_synced(path: Path, lines: list[bytes]) -> None:
    """A new file of whole lines, on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(line + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())
