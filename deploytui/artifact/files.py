"""Where a candidate's model lies, what it is, and its checksum."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from deploytui.artifact.embedded import EMBEDDED, EmbeddedModel, cached_path
from deploytui.artifact.writing import write_whole
from deploytui.errors import DeployError
from deploytui.profile.nearest import did_you_mean
from deploytui.profile.places import user_path
from deploytui.record.facts import Failure

CHUNK = 4 << 20
BUILT_IN = "builtin:"
_SHARD = re.compile(r"^(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})\.gguf$")


class ModelPlace(Struct, frozen=True, kw_only=True):
    """Where a model is: at `path`, or still to be fetched as `download`, or nowhere for the reason in `failure`."""

    path: Path | None = None
    sha256: str | None = None
    """Of the file, where it was checked when it was fetched."""
    download: EmbeddedModel | None = None
    failure: Failure | None = None


class Fingerprint(Struct, frozen=True):
    """What tells that a file is still the one that was hashed."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str


def resolve_model(model: str | None, base_dir: Path, cache_dir: Path) -> ModelPlace:
    """The place of a model as a profile names it; paths are relative to the profile's folder. None has no place."""
    if model is None:
        return ModelPlace()
    if model.startswith(BUILT_IN):
        return _embedded_place(model, cache_dir)
    path = base_dir / user_path(model)
    try:
        return ModelPlace(path=path) if path.exists() else ModelPlace(failure=_absent(model, path))
    except OSError as error:
        what = f"The model path {model[:200]!r} can't be looked at."
        fix = "Correct model, or check who may read its folder."
        return ModelPlace(failure=Failure(kind="invalid_config", what=what, why=str(error.strerror), fix=fix))


def _embedded_place(name: str, cache_dir: Path) -> ModelPlace:
    embedded = EMBEDDED.get(name)
    if embedded is None:
        fix = did_you_mean(name, EMBEDDED)
        return ModelPlace(failure=Failure(kind="invalid_config", what=f"There is no embedded model {name!r}.", fix=fix))
    path = cached_path(embedded, cache_dir)
    return ModelPlace(path=path, sha256=embedded.sha256) if path else ModelPlace(download=embedded)


def _absent(model: str, path: Path) -> Failure:
    if path.is_symlink():
        why = f"{path} is a link to {path.readlink()}, which does not exist."
        return Failure(kind="invalid_config", what=f"The model {model!r} is a dangling link.", why=why, fix="Fetch it.")
    what = f"There is no such path: model {model!r}, looked for at {path}."
    return Failure(kind="invalid_config", what=what, fix="Correct model; relative paths start at the profile's folder.")


def artifact_files(path: Path) -> tuple[Path, ...]:
    """All files of the artifact, sorted: the file with its shards, or everything below the folder."""
    if path.is_dir():
        return tuple(sorted(file for file in path.rglob("*") if file.is_file()))
    match = _SHARD.match(path.name)
    if match is None:
        return (path,)
    return tuple(sorted(path.parent.glob(f"{_literal(match['stem'])}-*-of-{match['count']}.gguf")))


def _literal(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)


def sha256_file(path: Path, *, chunk: int = CHUNK, stop: Callable[[], bool] | None = None) -> str | None:
    """The file's sha256 in hex; None when `stop` said so before its end. DeployError when it can't be read."""
    digest = hashlib.sha256()
    for part in _parts(path, chunk):
        if stop is not None and stop():
            return None
        digest.update(part)
    return digest.hexdigest()


def known_sha256(path: Path, cache_dir: Path, *, stop: Callable[[], bool] | None = None) -> str | None:
    """As `sha256_file`, but remembered for as long as the file's size, time and inode stay the same."""
    try:
        stat = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    memory = _memory(path, cache_dir)
    known = _remembered(memory, stat)
    if known is not None:
        return known
    found = sha256_file(path, stop=stop)
    if found is not None:
        _remember(memory, stat, found)
    return found


def remembered_sha256(path: Path, cache_dir: Path) -> str | None:
    """The checksum that is remembered and still holds, without reading the file; None where there is none."""
    try:
        return _remembered(_memory(path, cache_dir), path.stat())
    except OSError:
        return None


def remember_sha256(path: Path, cache_dir: Path, sha256: str) -> None:
    """Remember a checksum that was just computed; OSError when the file is not there."""
    _remember(_memory(path, cache_dir), path.stat(), sha256)


def _parts(path: Path, chunk: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while part := file.read(chunk):
                yield part
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DeployError:
    return DeployError(f"{path} can't be read.", why=str(error), fix="Check the file and who may read it.")


def _memory(path: Path, cache_dir: Path) -> Path:
    """Where the checksum of a file is remembered."""
    return cache_dir / "checksums" / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.json"


def _remembered(memory: Path, stat: os.stat_result) -> str | None:
    try:
        known = msgspec.json.decode(memory.read_bytes(), type=Fingerprint)
    except (OSError, msgspec.DecodeError):
        return None
    same = (known.size, known.mtime_ns, known.inode) == (stat.st_size, stat.st_mtime_ns, stat.st_ino)
    return known.sha256 if same else None


def _remember(memory: Path, stat: os.stat_result, sha256: str) -> None:
    """Keep it for the next time; a full or read-only cache only costs that time."""
    with suppress(OSError):
        kept = Fingerprint(stat.st_size, stat.st_mtime_ns, stat.st_ino, sha256)
        write_whole(memory, msgspec.json.encode(kept))
