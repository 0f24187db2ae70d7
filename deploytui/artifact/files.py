"""Where a candidate's model lies, what it is, and its checksum."""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from deploytui.artifact.embedded import EMBEDDED, EmbeddedModel, cached_path
from deploytui.artifact.gguf import MAGIC, read_gguf
from deploytui.errors import DeployError
from deploytui.profile.nearest import did_you_mean
from deploytui.profile.places import user_path
from deploytui.record.facts import Artifact, Failure

CHUNK = 4 << 20
BUILT_IN = "builtin:"
_HUB_ID = re.compile(r"^[\w][\w.-]*/[\w.-]+$")
_SHARD = re.compile(r"^(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})\.gguf$")

MARKERS: tuple[tuple[str, str], ...] = (
    ("genai_config.json", "onnx"),
    ("*.safetensors", "safetensors"),
    ("*.onnx", "onnx"),
    ("*.engine", "tensorrt"),
    ("*.gguf", "gguf"),
    ("pytorch_model*.bin", "pytorch"),
)
"""What in a folder shows its format; the first that is there wins."""

SUFFIXES = {
    ".gguf": "gguf",
    ".safetensors": "safetensors",
    ".onnx": "onnx",
    ".engine": "tensorrt",
    ".bin": "pytorch",
    ".pt": "pytorch",
}


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
    if _HUB_ID.match(model):
        return Failure(
            kind="invalid_config",
            what=f"There is no such path: model {model!r}, looked for at {path}.",
            fix="Hub ids are not downloaded by this version: fetch the model and give its path.",
        )
    what = f"There is no such path: model {model!r}, looked for at {path}."
    return Failure(kind="invalid_config", what=what, fix="Correct model; relative paths start at the profile's folder.")


def describe(path: Path) -> Artifact:
    """What lies at `path`: format, bytes, and for GGUF its architecture, context and quantisation."""
    try:
        files = artifact_files(path)
        size = sum(file.stat().st_size for file in files)
    except OSError:
        return Artifact(path=str(path))
    kind = format_of(path)
    if kind != "gguf":
        return Artifact(path=str(path), format=kind, bytes=size)
    header = read_gguf(files[0] if files else path)
    return Artifact(
        path=str(path),
        format=kind,
        bytes=size,
        quantization=header.quantization,
        architecture=header.architecture,
        context_length=header.context_length,
    )


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


def format_of(path: Path) -> str | None:
    """The format by content or name; None when nothing shows it."""
    if not path.is_dir():
        return "gguf" if _starts_with_magic(path) else SUFFIXES.get(path.suffix.lower())
    return next((kind for pattern, kind in MARKERS if any(path.glob(pattern))), None)


def _starts_with_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


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
    memory = cache_dir / "checksums" / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]}.json"
    known = _remembered(memory)
    if known and (known.size, known.mtime_ns, known.inode) == (stat.st_size, stat.st_mtime_ns, stat.st_ino):
        return known.sha256
    found = sha256_file(path, stop=stop)
    if found is not None:
        _remember(memory, Fingerprint(stat.st_size, stat.st_mtime_ns, stat.st_ino, found))
    return found


def _parts(path: Path, chunk: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while part := file.read(chunk):
                yield part
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DeployError:
    return DeployError(f"{path} can't be read.", why=str(error), fix="Check the file and who may read it.")


def _remembered(memory: Path) -> Fingerprint | None:
    try:
        return msgspec.json.decode(memory.read_bytes(), type=Fingerprint)
    except (OSError, msgspec.DecodeError):
        return None


def _remember(memory: Path, fingerprint: Fingerprint) -> None:
    """Keep it for the next time; a full or read-only cache only costs that time."""
    temporary = memory.with_suffix(f".{secrets.token_hex(4)}.tmp")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(fingerprint))
        temporary.replace(memory)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
