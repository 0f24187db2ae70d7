"""What the session tests share: a folder, events, and waiting for a state under a time limit."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from deploytui.record.events import Decided, Note, SessionEnded, SessionStarted
from deploytui.record.verdict import Decision
from deploytui.session.folder import SessionFolder, new_session

NOW = datetime(2026, 11, 30, 13, 5, 1, tzinfo=UTC)


def made(tmp_path: Path, name: str = "qwen-chat") -> SessionFolder:
    return new_session(tmp_path / "state", name, NOW)


def note(text: str, at_ns: int = 1) -> Note:
    return Note(at_ns=at_ns, level="info", text=text)


def started(name: str = "qwen-chat", wall_s: float = 1.0) -> SessionStarted:
    return SessionStarted(
        at_ns=1,
        session="s",
        name=name,
        schema=1,
        tool_version="0",
        definitions=1,
        wall_s=wall_s,
        boot_id=None,
        hostname="h",
        pid=1,
        base_dir="/",
        profile_sha256="",
        baseline=None,
    )


def decided(winner: str | None, final: bool = True) -> Decided:
    return Decided(at_ns=3, decision=Decision(decision="accept", title="t", winner=winner, final=final))


def ended() -> SessionEnded:
    return SessionEnded(at_ns=4, exit_status=0)


def wait_until(state: Callable[[], bool], within_s: float = 10.0) -> None:
    end = time.monotonic() + within_s
    while not state():
        assert time.monotonic() < end, "the awaited state did not come"
        time.sleep(0.01)
