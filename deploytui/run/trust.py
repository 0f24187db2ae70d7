"""A profile can name programs: what it would run is shown and confirmed once, by its hash, before anything runs."""

import hashlib
from pathlib import Path

from deploytui.profile.files import save_text
from deploytui.profile.schema import Candidate, Profile

LIST = "trusted-profiles"
REMOTE_CODE = ("trust-remote-code", "trust_remote_code")


def fingerprint(text: str) -> str:
    """The sha256 of a profile's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def programs(profile: Profile) -> tuple[str, ...]:
    """What the profile would run or let run beyond the engines installed here; empty for most profiles."""
    return tuple(line for candidate in profile.candidates for line in _programs(candidate))


def _programs(candidate: Candidate) -> list[str]:
    named: list[str] = []
    if candidate.command:
        named.append(f"command = {' '.join(candidate.command)}")
    if candidate.python:
        named.append(f"python = {candidate.python}")
    if candidate.container:
        named.append(f"container = {candidate.container.image}")
    named += [f"env = {key}={value}" for key, value in sorted(candidate.env.items())]
    named += [f"args: {word}" for word in candidate.args if any(mark in word for mark in REMOTE_CODE)]
    return [f"{candidate.name}: {line}" for line in named]


def trusted(state: Path, sha256: str) -> bool:
    """Whether this very text was confirmed on this node, or written by it."""
    path = state / LIST
    return path.is_file() and sha256 in path.read_text(encoding="utf-8").split()


def trust(state: Path, sha256: str) -> None:
    """Remember a confirmed text."""
    path = state / LIST
    known = path.read_text(encoding="utf-8") if path.is_file() else ""
    if sha256 not in known.split():
        state.mkdir(parents=True, exist_ok=True)
        save_text(path, f"{known}{sha256}\n")
