"""A profile can name programs: what it would run is shown and confirmed once, by its hash, before anything runs."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from deploytui.errors import SessionError, UsageError
from deploytui.profile.files import save_text
from deploytui.profile.schema import Candidate, Profile
from deploytui.profile.secret_names import HIDDEN, is_secret_name

LIST = "trusted-profiles"
REMOTE_CODE = (
    *("remote-code", "hf-remote", "plugin", "middleware", "logits-processor", "logit-processor"),
    *("worker-cls", "extension-cls", "scheduler-cls", "executor-backend", "weight-loader", "load-format", "pickle"),
    *("kv-transfer-config", "module-path", "stat-logger"),
)
"""Arguments of engines that let code in hold one of these, with dashes or underscores."""
Confirm = Callable[[Sequence[str]], bool]
"""Shows what a profile would run and asks whether it may."""


def fingerprint(text: str) -> str:
    """The sha256 of a profile's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def programs(profile: Profile) -> tuple[str, ...]:
    """What the profile would run or let run beyond the engines installed here; empty for most profiles."""
    return tuple(line for candidate in profile.candidates for line in _programs(candidate))


def _programs(candidate: Candidate) -> Iterator[str]:
    for line in (*_named(candidate), *_prepared(candidate), *_let_in(candidate)):
        yield " ".join(f"{candidate.name}: {line}".splitlines())


def _named(candidate: Candidate) -> Iterator[str]:
    if candidate.command:
        yield f"command = {' '.join(candidate.command)}"
    if candidate.python:
        yield f"python = {candidate.python}"
    if (container := candidate.container) is not None:
        yield f"container = {container.image}"
        if container.args:
            yield f"container.args = {' '.join(container.args)}"
    for key, value in sorted(candidate.env.items()):
        yield f"env = {key}={HIDDEN if is_secret_name(key) else value}"


def _prepared(candidate: Candidate) -> Iterator[str]:
    """A conversion is a program of its own; what it is given may name code as well."""
    if (prepare := candidate.prepare) is None:
        return
    if prepare.command:
        yield f"prepare.command = {' '.join(prepare.command)}"
    if prepare.python:
        yield f"prepare.python = {prepare.python}"
    if prepare.args:
        yield f"prepare.args = {' '.join(prepare.args)}"


def _let_in(candidate: Candidate) -> Iterator[str]:
    """Code that comes with the model, or that the engine loads because its arguments say so."""
    if candidate.trust_remote_code:
        yield "trust_remote_code = true: Python code that comes with the model"
    if candidate.allow_pickle:
        yield "allow_pickle = true: pickled weights, which can hold code"
    plain = ((word, word.lower().replace("_", "-")) for word in candidate.args)
    yield from (f"args: {word}" for word, text in plain if any(mark in text for mark in REMOTE_CODE))


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
