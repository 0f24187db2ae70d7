"""The list of sessions, from the first and last bytes of their journals."""

from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from deploytui.record.events import AnyEvent, Decided, Planned, SessionEnded, SessionStarted, decoder
from deploytui.record.lines import LineReader
from deploytui.record.words import DecisionWord
from deploytui.session.folder import SessionFolder, session_ids
from deploytui.session.lock import holder

Life = Literal["running", "ended", "died", "elsewhere"]
"""`died`: the runner is gone without a last word; `elsewhere`: another host has it."""

HEAD = 1 << 14
HEAD_MOST = 1 << 20
TAILS = (1 << 16, 1 << 22)
"""How much of the end is read, and how much when the decision was not in that."""


class SessionRow(Struct, frozen=True, kw_only=True):
    """One session at a glance; None where its journal does not tell."""

    id: str
    name: str
    path: Path
    started_wall_s: float | None = None
    state: Life
    decision: DecisionWord | None = None
    final: bool | None = None
    """Whether the decision is the last one."""
    winner: str | None = None
    candidates: int | None = None
    exit_status: int | None = None
    simulated: bool = False


class _Ends(Struct):
    """What the two ends of a journal tell."""

    started: SessionStarted | None = None
    planned: Planned | None = None
    decided: Decided | None = None
    ended: SessionEnded | None = None


def list_sessions(state: Path) -> list[SessionRow]:
    """All sessions of the state folder, newest first; one that can't be read is a row all the same."""
    rows = [session_row(SessionFolder(state / known)) for known in session_ids(state)]
    return sorted(rows, key=lambda row: (row.started_wall_s or 0.0, row.id), reverse=True)


def latest(state: Path, running_only: bool = False) -> SessionFolder | None:
    """The newest session, or the newest that runs on this host; None when there is none."""
    for row in list_sessions(state):
        if not running_only or row.state == "running":
            return SessionFolder(row.path)
    return None


def session_row(folder: SessionFolder) -> SessionRow:
    """A session at a glance."""
    ends = _read_ends(folder.journal)
    decision = ends.decided.decision if ends.decided else None
    return SessionRow(
        id=folder.id,
        name=ends.started.name if ends.started else folder.id,
        path=folder.path,
        started_wall_s=ends.started.wall_s if ends.started else None,
        state=_life(folder, ends.ended),
        decision=decision.decision if decision else None,
        final=decision.final if decision else None,
        winner=decision.winner if decision else None,
        candidates=len(ends.planned.candidates) if ends.planned else None,
        exit_status=ends.ended.exit_status if ends.ended else None,
        simulated=bool((ends.started and ends.started.simulated) or (decision and decision.simulated)),
    )


def _life(folder: SessionFolder, ended: SessionEnded | None) -> Life:
    held = holder(folder)
    if held is not None:
        return "elsewhere" if held.elsewhere else "running"
    return "ended" if ended else "died"


def _read_ends(journal: Path) -> _Ends:
    ends = _Ends()
    try:
        with journal.open("rb") as file:
            _read_head(file, ends)
            for size in TAILS:
                if not _read_tail(file, size, ends) or ends.decided:
                    break
    except OSError:
        return ends
    return ends


def _read_head(file: BinaryIO, ends: _Ends) -> None:
    reader = LineReader()
    while not ends.planned and file.tell() < HEAD_MOST and (block := file.read(HEAD)):
        for event in reader.feed(block):
            match event:
                case SessionStarted():
                    ends.started = ends.started or event
                case Planned():
                    ends.planned = ends.planned or event


def _read_tail(file: BinaryIO, size: int, ends: _Ends) -> bool:
    """Look for the last words in the last `size` bytes; whether there is more before them."""
    start = max(0, file.seek(0, 2) - size)
    file.seek(start)
    block = b"\n" + file.read() if start == 0 else file.read()
    decided, ended, started = (_last(block, kind) for kind in ("decided", "session_ended", "session_started"))
    decided_event, ended_event = _event(block, decided), _event(block, ended)
    ends.decided = decided_event if isinstance(decided_event, Decided) else None
    ends.ended = ended_event if isinstance(ended_event, SessionEnded) and ended > started else None
    return start > 0


def _last(block: bytes, kind: str) -> int:
    """Where the last whole line of a kind begins, -1 when there is none; our writer puts the kind first."""
    whole = block.rfind(b"\n")
    return block.rfind(b'\n{"kind":"%s"' % kind.encode(), 0, max(whole, 0))


def _event(block: bytes, at: int) -> AnyEvent | None:
    if at < 0:
        return None
    try:
        return decoder.decode(block[at + 1 : block.index(b"\n", at + 1)])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
