"""The hub client's cache as it lies on disk: read without the client, so that an offline node needs no more."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from deploytui.artifact.hub_files import HubFile
from deploytui.artifact.writing import write_whole
from deploytui.profile.places import user_path

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SNAPSHOT = re.compile(r"/models--[^/]+/snapshots/([0-9a-f]{40})(?:/|$)")
DEFAULT_REVISION = "main"


class Kept(Struct, frozen=True, kw_only=True):
    """What was fetched of one commit: beside our cache, so that the next start knows it is whole."""

    files: tuple[HubFile, ...]


def hub_cache(env: Mapping[str, str]) -> Path:
    """Where the client keeps repositories, as it reads the environment itself."""
    if named := env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE"):
        return user_path(os.path.expandvars(named))
    if home := env.get("HF_HOME"):
        return user_path(os.path.expandvars(home)) / "hub"
    caches = env.get("XDG_CACHE_HOME")
    return (user_path(caches) if caches else Path.home() / ".cache") / "huggingface" / "hub"


def repository_dir(cache: Path, repo: str) -> Path:
    """The folder of one repository."""
    return cache / f"models--{repo.replace('/', '--')}"


def snapshot_dir(cache: Path, repo: str, commit: str) -> Path:
    """The folder of one commit's files."""
    return repository_dir(cache, repo) / "snapshots" / commit


def cached_commit(cache: Path, repo: str, revision: str | None) -> str | None:
    """The commit that a revision meant when it was last fetched; None where nothing of it is kept."""
    asked = revision or DEFAULT_REVISION
    commit = asked if _COMMIT.fullmatch(asked) else _reference(cache, repo, asked)
    return commit if commit and snapshot_dir(cache, repo, commit).is_dir() else None


def keep_reference(cache: Path, repo: str, revision: str | None, commit: str) -> None:
    """Remember what a branch meant, as the client does, now that its files are here."""
    asked = revision or DEFAULT_REVISION
    if not _COMMIT.fullmatch(asked):
        with suppress(OSError):
            write_whole(repository_dir(cache, repo) / "refs" / asked, commit.encode())


def cached_files(cache: Path, repo: str, commit: str) -> tuple[HubFile, ...]:
    """What lies in a snapshot, with the checksum that a large file is named by."""
    folder = snapshot_dir(cache, repo, commit)
    return tuple(_cached(folder, path) for path in sorted(folder.rglob("*")) if path.is_file())


def is_cached(cache: Path, repo: str, commit: str, file: HubFile) -> bool:
    """Whether a file is in the cache, of the size that the hub tells."""
    try:
        size = (snapshot_dir(cache, repo, commit) / file.path).stat().st_size
    except OSError:
        return False
    return file.bytes is None or size == file.bytes


def keep_listing(own_cache: Path, repo: str, commit: str, files: tuple[HubFile, ...]) -> None:
    """Note what was fetched of a commit; a read-only cache only costs the knowledge."""
    with suppress(OSError):
        write_whole(_listing_path(own_cache, repo, commit), msgspec.json.encode(Kept(files=files)))


def kept_listing(own_cache: Path, repo: str, commit: str) -> tuple[HubFile, ...] | None:
    """What was noted when a commit was fetched; None where that was not done here."""
    try:
        return msgspec.json.decode(_listing_path(own_cache, repo, commit).read_bytes(), type=Kept).files
    except (OSError, msgspec.DecodeError):
        return None


def commit_of(path: Path) -> str | None:
    """The commit of a path inside such a cache; None elsewhere."""
    found = _SNAPSHOT.search(path.as_posix())
    return found[1] if found else None


def _listing_path(own_cache: Path, repo: str, commit: str) -> Path:
    return own_cache / "hub" / repo.replace("/", "--") / f"{commit}.json"


def _reference(cache: Path, repo: str, revision: str) -> str | None:
    try:
        text = (repository_dir(cache, repo) / "refs" / revision).read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):
        return None
    return text if _COMMIT.fullmatch(text) else None


def _cached(folder: Path, path: Path) -> HubFile:
    named = path.readlink().name if path.is_symlink() else ""
    return HubFile(
        path=path.relative_to(folder).as_posix(),
        bytes=path.stat().st_size,
        sha256=named if _SHA256.fullmatch(named) else None,
    )
