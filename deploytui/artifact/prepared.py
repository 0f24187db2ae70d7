"""Models that were converted or built here: kept under a key of all that went into them, and found again by it."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from deploytui.artifact.hub import HubDownload
from deploytui.artifact.manifest import manifest_files
from deploytui.record.facts import Preparation

OUT = "out"
RECORD = "record.json"
LOG = "log.txt"
LARGE_BYTES = 64 << 20
"""What is larger is no script or program, but data that a command is given."""
_KEY = re.compile(r"[0-9a-f]{40}")


class PreparedRecord(Struct, frozen=True, kw_only=True):
    """Beside a prepared model: how it was made; written last, so that what has it is whole."""

    name: str
    key: str
    argv: tuple[str, ...]
    scripts: dict[str, str] = {}
    """sha256 by file name."""
    versions: dict[str, str] = {}
    seconds: float
    """How long the build took."""
    output_bytes: int
    output_sha256: dict[str, str] = {}


def prepared_dir(cache_dir: Path) -> Path:
    """Where all prepared models are."""
    return cache_dir / "prepared"


def place_of(cache_dir: Path, key: str) -> Path:
    """The folder of one prepared model."""
    assert _KEY.fullmatch(key), "a key is one of preparation_key"
    return prepared_dir(cache_dir) / key


def output_of(cache_dir: Path, key: str, output: str) -> Path:
    """The prepared model itself: all that was made, or the part of it that is the model."""
    return place_of(cache_dir, key) / OUT / output


def found(cache_dir: Path, key: str) -> PreparedRecord | None:
    """How a kept model was made; None where it is not there, or not as it was left."""
    folder = place_of(cache_dir, key)
    try:
        record = msgspec.json.decode((folder / RECORD).read_bytes(), type=PreparedRecord)
        whole = total_bytes(folder / OUT) == record.output_bytes
    except (OSError, msgspec.DecodeError):
        return None
    return record if whole and record.key == key else None


def total_bytes(folder: Path) -> int:
    """Of all files below a folder; OSError when it can't be read."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def preparation_key(
    source: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    scripts: Mapping[str, str],
    versions: Mapping[str, str],
    output: str,
) -> str:
    """The key of what a command makes of a source: another script, package or word makes another one."""
    parts = [source, list(argv), dict(env), dict(scripts), dict(versions), output]
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:40]


def scripts_sha256(scripts: Iterable[str]) -> dict[str, str]:
    """The checksum of each script by its name, of a large file its size and time; OSError when one can't be read."""
    sums: dict[str, str] = {}
    for path in map(Path, scripts):
        sums[str(path) if path.name in sums else path.name] = _script_sha256(path)
    return sums


def _script_sha256(path: Path) -> str:
    stat = path.stat()
    if stat.st_size > LARGE_BYTES:
        return f"{stat.st_size} bytes of {stat.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source_key(path: Path) -> str:
    """What tells local files from others without reading them: names, sizes and times."""
    files = [(name, file.stat().st_size, file.stat().st_mtime_ns) for name, file in manifest_files(path).items()]
    return "local:" + hashlib.sha256(msgspec.json.encode([path.name, files])).hexdigest()


def hub_key(download: HubDownload) -> str:
    """The same for a hub's model, which its commit names."""
    return f"hub:{download.repo}@{download.commit}/{download.model}"


def preparation_of(record: PreparedRecord, *, reused: bool, log: str | None) -> Preparation:
    """What the record of a session keeps of a preparation."""
    return Preparation(
        name=record.name,
        key=record.key,
        argv=record.argv,
        script_sha256=next(iter(record.scripts.values()), None),
        versions=record.versions,
        reused=reused,
        seconds=record.seconds,
        output_bytes=record.output_bytes,
        output_sha256=record.output_sha256,
        log=log,
    )
