"""Profiles on disk: read, listed, saved whole or not at all."""

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from deploytui.errors import DeployError, ProfileError
from deploytui.profile.parse import parse_profile, peek
from deploytui.profile.schema import Profile


class ListedProfile(Struct, frozen=True, kw_only=True):
    """A profile of a folder, as the start screen lists it."""

    path: Path
    name: str | None
    """None when it is broken."""
    saved: bool = False
    fault: str | None = None
    """Why it can't be run; None when it can."""


def read_profile(path: str | Path) -> Profile:
    """The profile in a file; ProfileError when it can't be read or is no profile."""
    return parse_profile(read_text(path), str(path))


def read_text(path: str | Path) -> str:
    """The text of a profile file, byte for byte in its line ends; ProfileError when it can't be read."""
    try:
        return Path(path).read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise ProfileError(f"There is no profile {path}.", fix="Check the path and the folder you are in.") from error
    except IsADirectoryError as error:
        fix = "Name a .toml file in it."
        raise ProfileError(f"{path} is a folder, not a profile.", fix=fix) from error
    except UnicodeDecodeError as error:
        what = f"{path} is not UTF-8: byte {error.start} can't be read."
        raise ProfileError(what, why=str(error), fix="Save it as UTF-8; TOML knows no other encoding.") from error
    except (OSError, ValueError) as error:
        fix = "Check its path and who may read it."
        raise ProfileError(f"{path} can't be read.", why=str(error), fix=fix) from error


def list_profiles(folder: str | Path) -> list[ListedProfile]:
    """The TOML files of a folder by file name, broken ones with their fault; empty when there is no such folder."""
    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix == ".toml" and path.is_file())
    except OSError:
        return []
    return [_listed(path) for path in paths]


def save_text(path: str | Path, text: str) -> None:
    """Put the text in the file as UTF-8, whole and synced, or leave the file as it was and raise DeployError."""
    save_bytes(path, text.encode("utf-8"))


def save_bytes(path: str | Path, data: bytes) -> None:
    """Put the bytes in the file, whole and synced, or leave the file as it was and raise DeployError."""
    save_blocks(path, (data,))


def save_blocks(path: str | Path, blocks: Iterable[bytes]) -> None:
    """As `save_bytes`, with the blocks one after the other as they come."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as device:  # or a pipe: a file put in its place would be a disaster
                device.writelines(blocks)
        else:
            _replace(target, blocks)
    except OSError as error:
        fix = "Free some space or choose another folder; nothing was changed."
        raise DeployError(f"{path} could not be saved.", why=str(error), fix=fix) from error


def edit_profile(path: str | Path, changes: Mapping[str, Any]) -> Profile:
    """Change values in a profile file in place, comments and order kept; the profile as it is then.

    Paths are those of `edited`; ProfileError leaves the file as it was.
    """
    from deploytui.profile.edit import edited  # late: its library is needed for nothing else

    text = edited(read_text(path), changes, str(path))
    save_text(path, text)
    return parse_profile(text, str(path))


def _listed(path: Path) -> ListedProfile:
    """One file's row; also what is too new or broken has one."""
    try:
        text = read_text(path)
        seen = peek(text, path.name)
    except ProfileError as error:
        return ListedProfile(path=path, name=None, fault=error.text())
    try:
        profile = parse_profile(text, path.name)
    except ProfileError as error:
        return ListedProfile(path=path, name=seen.name if seen.newer else None, saved=seen.saved, fault=error.text())
    return ListedProfile(path=path, name=profile.name, saved=profile.saved)


def _replace(target: Path, blocks: Iterable[bytes]) -> None:
    """A new file with the blocks in the place of `target`; no trace of it when that fails."""
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        _write_synced(temporary, blocks, like=target)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _write_synced(path: Path, blocks: Iterable[bytes], *, like: Path) -> None:
    """Write a new file to the end and sync it; it gets the mode of `like` where that exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        if like.exists():
            os.fchmod(descriptor, like.stat().st_mode & 0o7777)
        for block in blocks:
            rest = memoryview(block)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the new name last; some network file systems refuse this, and the file itself is synced already."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)
