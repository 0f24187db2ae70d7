"""A profile can name programs: what it would run is shown and confirmed once, by its hash, before anything runs."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from deploytui.errors import SessionError, UsageError
from deploytui.profile.files import save_text
from deploytui.profile.schema import Candidate, Profile

LIST = "trusted-profiles"
REMOTE_CODE = ("trust-remote-code", "trust_remote_code")
Confirm = Callable[[Sequence[str]], bool]
"""Shows what a profile would run and asks whether it may."""


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
    return [" ".join(f"{candidate.name}: {line}".splitlines()) for line in named]


def confirmed(profile: Profile, state: Path, sha256: str, confirm: Confirm) -> None:
    """Return when everything the profile names may run; UsageError with what that is when nobody confirmed it."""
    named = programs(profile)
    if not named or trusted(state, sha256):
        return
    if not confirm(named):
        raise UsageError(
            "The profile names programs that were not confirmed on this node:\n  " + "\n  ".join(named),
            fix="Look at them, then run again with --trust.",
        )
    trust(state, sha256)


def trusted(state: Path, sha256: str) -> bool:
    """Whether this very text was confirmed on this node, or written by it."""
    return sha256 in _known(state / LIST).split()


def trust(state: Path, sha256: str) -> None:
    """Remember a confirmed text."""
    known = _known(state / LIST)
    if sha256 in known.split():
        return
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(state, error) from error
    save_text(state / LIST, f"{known}{sha256}\n")


def _known(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError as error:
        raise _unwritable(path.parent, error) from error


def _unwritable(state: Path, error: OSError) -> SessionError:
    return SessionError(
        f"The state folder {state} can't be used.", why=str(error), fix="Name another folder with --state-dir."
    )
