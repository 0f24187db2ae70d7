"""A candidate's failure as an exception inside the runner; outside it is a record."""

import signal
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from deploytui.engine.cause import spoken
from deploytui.engine.failures import explain_exit
from deploytui.engine.protocol import Engine
from deploytui.errors import DeployError, DownloadError, EngineError, ProfileError, UsageError
from deploytui.record.facts import Failure
from deploytui.record.words import FailureKind
from deploytui.run.keeping import Kept
from deploytui.telemetry.cgroup import oom_kills

TAIL_LINES = 40
LOGS = ("engine.log", "engine.tail.log.1", "engine.tail.log")
"""The engine's log from its beginning, then the two halves of what did not fit."""


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
    for name in LOGS:
        path = folder / name
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace") as log:
                yield from (line.rstrip("\n") for line in log)


def last_line(folder: Path) -> str:
    """The newest line of the engine's log with text that is no Python warning; empty when there is none."""
    return next((line for name in reversed(LOGS) if (line := _last_line(folder / name))), "")


def _last_line(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - 2000))
        tail = log.read().decode(errors="replace").replace("\r", "\n").splitlines()
    return next(reversed(spoken(tail)), "")


def why_it_died(engine: Engine, kept: Kept, folder: Path, doing: str) -> Failure:
    """The root cause in the log, or else how the process ended with its last lines."""
    if kept.spawn_error:
        what = f"{engine.title} could not be started."
        return Failure(kind="broken_install", what=what, why=kept.spawn_error, fix="Check `python` and `command`.")
    return root_cause(engine, kept, folder) or how_it_ended(kept, folder, doing)


def root_cause(engine: Engine, kept: Kept, folder: Path) -> Failure | None:
    """What the log says, or of a process that was killed what the kernel counted; None when nothing tells."""
    found = engine.explain(log_lines(folder))
    if found is not None and (found.kind == "oom" or not was_killed(kept)):
        return found
    now = oom_kills()
    if now is not None and kept.oom_kills is not None and now > kept.oom_kills:
        return out_of_memory(kept.oom_kills, now, last_line(folder))
    return found


def how_it_ended(kept: Kept, folder: Path, doing: str) -> Failure:
    """The end of a process that nothing explains, with its last lines."""
    return explain_exit(kept.exit_code, kept.exit_signal, deque(log_lines(folder), TAIL_LINES), doing)


def was_killed(kept: Kept) -> bool:
    """Whether SIGKILL ended it, or a part of it whose end it passed on."""
    return signal.SIGKILL in (kept.exit_signal, -(kept.exit_code or 0)) or kept.exit_code == 128 + signal.SIGKILL


def out_of_memory(before: int, now: int, last: str) -> Failure:
    """What the kernel counted tells more than the end of the process does."""
    counted = f"memory.events of the control group: oom_kill {before} before the launch, {now} now"
    return Failure(
        kind="oom",
        what="The kernel ended the engine, or a part of it, for want of host memory.",
        why="\n".join(part for part in (counted, last) if part),
        fix="Raise the memory limit of the job or container, lower max_model_len, or take a smaller quantisation.",
    )
