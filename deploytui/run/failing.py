"""A candidate's failure as an exception inside the runner; outside it is a record."""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from deploytui.engine.failures import explain_exit
from deploytui.engine.protocol import Engine
from deploytui.errors import DeployError, DownloadError, EngineError, ProfileError, UsageError
from deploytui.record.facts import Failure
from deploytui.record.words import FailureKind
from deploytui.run.keeping import Kept

TAIL_LINES = 40


class CandidateFailed(Exception):
    """The candidate that runs can't go on; the session does."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


class EngineDied(Exception):
    """The engine's process is gone; reading its log for the cause may take seconds, so that is left for a thread."""

    def __init__(self, explain: Callable[[], Failure]) -> None:
        super().__init__("the engine's process is gone")
        self.explain = explain


def too_long(what: str, key: str, limit_s: float) -> Failure:
    """A part of the work that took longer than the profile's `timeouts` give it."""
    return Failure(kind="timeout", what=f"{what} took longer than {limit_s:g} s.", fix=f"Raise `timeouts.{key}`.")


def failed(error: DeployError) -> Failure:
    """The record of an error that a user can act on."""
    return Failure(kind=_kind(error), what=error.what, why=error.why, fix=error.fix)


def _kind(error: DeployError) -> FailureKind:
    match error:
        case EngineError(kind=kind):
            known: FailureKind = msgspec.convert(kind, FailureKind)
            return known
        case ProfileError() | UsageError():
            return "invalid_config"
        case DownloadError():
            return "download_failed"
        case _:
            return "unknown"


def log_lines(folder: Path) -> Iterator[str]:
    """The engine's log from its beginning, then the tail that did not fit; nothing when there is none."""
    for name in ("engine.log", "engine.tail.log.1", "engine.tail.log"):
        path = folder / name
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace") as log:
                yield from (line.rstrip("\n") for line in log)


def last_line(folder: Path) -> str:
    """The newest line of the engine's log that is not empty; empty when there is none."""
    path = folder / "engine.log"
    if not path.is_file():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - 2000))
        tail = log.read().decode(errors="replace").replace("\r", "\n").splitlines()
    return next((line.strip() for line in reversed(tail) if line.strip()), "")


def why_it_died(engine: Engine, kept: Kept, folder: Path, doing: str) -> Failure:
    """The root cause in the log, or else how the process ended with its last lines."""
    if kept.spawn_error:
        what = f"{engine.title} could not be started."
        return Failure(kind="broken_install", what=what, why=kept.spawn_error, fix="Check `python` and `command`.")
    found = engine.explain(log_lines(folder))
    return found or explain_exit(kept.exit_code, kept.exit_signal, deque(log_lines(folder), TAIL_LINES), doing)
