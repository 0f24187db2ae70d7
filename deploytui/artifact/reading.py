"""Reading files nobody vouches for: bounded, never waiting, and every trouble a `Failure` that names the file."""

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from deploytui.record.facts import Failure
from deploytui.record.words import FailureKind

LARGEST_JSON = 64 << 20
"""Tokenizers of 256,000 tokens take some 35 MB [bytes]."""

FETCH_AGAIN = "Fetch the file again, whole, and compare its checksum."
POINTER = b"version https://git-lfs"
"""How the text begins that Git keeps in place of a large file."""

_POINTER_SIZE = re.compile(rb"^size (\d{1,20})$", re.MULTILINE)


class FaultError(Exception):
    """A file can't be what it should be; carries the failure to report."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


def fault(kind: FailureKind, what: str, why: str = "", fix: str = FETCH_AGAIN) -> FaultError:
    """A failure to raise."""
    return FaultError(Failure(kind=kind, what=what, why=why, fix=fix))


def damaged(path: Path, why: str) -> FaultError:
    """The failure of a file whose bytes are not what they should be."""
    return fault("corrupt", f"{path.name} is damaged or cut off.", why)


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A regular file and its size [bytes]; FaultError for anything else, without waiting for a pipe's other end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _unopened(path, error) from error
    told = os.fstat(descriptor)
    if not stat.S_ISREG(told.st_mode):
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(told.st_mode) else "no ordinary file"
        raise fault("corrupt", f"{path.name} is {kind}, where a file belongs.", str(path), "Put the file there.")
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file, told.st_size
        except OSError as error:
            raise damaged(path, str(error)) from error


def _unopened(path: Path, error: OSError | ValueError) -> FaultError:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ELOOP:
        return fault("missing_file", f"{path.name} is a link that leads back to itself.", str(path), "Fetch it again.")
    if number in (errno.ENOENT, errno.ENOTDIR):
        return absent(path)
    what = f"{path.name[:200]} can't be read."
    return fault("missing_file", what, str(error), "Check the path, and who may read the file.")


def absent(path: Path) -> FaultError:
    """The failure of a file that is not there, with what is there in its place."""
    if path.is_symlink():
        why = f"{path} is a link to {_target(path)}, which does not exist."
        return fault("missing_file", f"{path.name} is a dangling link.", why, "Fetch it again: its download is gone.")
    if (unfinished := unfinished_download(path)) is not None:
        why = f"An unfinished download lies at {unfinished}."
        return fault("missing_file", f"{path.name} is not there: its download was not finished.", why, "Finish it.")
    return fault("missing_file", f"{path.name} is not there.", f"Looked for at {path}.", "Fetch the file.")


def _target(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError as error:
        return str(error)


def unfinished_download(path: Path) -> Path | None:
    """A file that a hub client has begun to write near this place and not finished; None when there is none."""
    snapshot = path.parent
    for folder in (snapshot.parent.parent / "blobs", snapshot / ".cache" / "huggingface" / "download"):
        found = _first(folder)
        if found is not None:
            return found
    return None


def _first(folder: Path) -> Path | None:
    try:
        with os.scandir(folder) as entries:
            return next((Path(entry.path) for entry in entries if entry.name.endswith(".incomplete")), None)
    except (OSError, ValueError):
        return None


def check_content(path: Path, head: bytes, size: int) -> None:
    """FaultError when the first bytes show that this is no model file: nothing, a Git-LFS pointer, a web page."""
    if size == 0:
        raise fault("corrupt", f"{path.name} is empty.", "the file is empty")
    if head.startswith(POINTER):
        match = _POINTER_SIZE.search(head)
        why = f"It stands for a file of {int(match[1]):,} bytes." if match else ""
        fix = "Run `git lfs pull` in its folder, or fetch the file itself."
        raise fault("missing_file", f"{path.name} is a Git-LFS pointer, not the weights.", why, fix)
    if head.lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        raise fault("corrupt", f"{path.name} is a web page, not a model file.", fix="Fetch the file itself.")


def read_bytes(path: Path, limit: int = LARGEST_JSON) -> bytes:
    """The whole file; FaultError when it is longer than `limit` [bytes], or no model's file at all."""
    with opened(path) as (file, size):
        if size > limit:
            raise fault("corrupt", f"{path.name} has {size} bytes, more than any such file needs.")
        content = file.read(limit + 1)[:limit]
    check_content(path, content[:512], len(content))
    return content


def read_json(path: Path, limit: int = LARGEST_JSON) -> dict[str, Any]:
    """The JSON object in a file; FaultError when it holds none."""
    content = read_bytes(path, limit)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise fault("corrupt", f"{path.name} is no valid JSON.", why) from error
    if not isinstance(found, dict):
        raise fault("corrupt", f"{path.name} holds no JSON object.", f"It holds {type(found).__name__}.")
    return found


def inside(folder: Path, name: str) -> Path:
    """The path of a file that another file names; FaultError when it would lie outside of the folder."""
    if not name or "\0" in name or name.startswith("/") or ".." in Path(name).parts:
        raise fault("corrupt", f"A file of {folder.name} names {name[:200]!r}, which is not in its folder.")
    return folder / name
