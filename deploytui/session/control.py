"""Words to a running session over its control socket: one request, one reply, a line of JSON each."""

import socket
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from deploytui.errors import SessionError
from deploytui.session.folder import SessionFolder
from deploytui.session.lock import holder

Word = Literal["skip", "cancel", "pause", "go_on", "kill", "status"]
WORDS: tuple[str, ...] = get_args(Word)
LINE_CAP = 1 << 16
TIMEOUT_S = 5.0


class Request(Struct, frozen=True, kw_only=True):
    """What a user wants of the runner; `kill` ends the session at once, `cancel` cleanly."""

    word: Word
    candidate: str | None = None


class Reply(Struct, frozen=True, kw_only=True):
    """The runner's answer; `text` says why when it is not `ok`."""

    ok: bool
    text: str = ""
    data: dict[str, Any] = {}


def ask_now(folder: SessionFolder, word: Word, candidate: str | None = None, timeout_s: float = TIMEOUT_S) -> Reply:
    """The runner's reply; blocks. SessionError when nobody runs the session here, or it does not answer."""
    path = _socket_path(folder)
    line = msgspec.json.encode(Request(word=word, candidate=candidate)) + b"\n"
    try:
        return msgspec.json.decode(_exchange(path, line, timeout_s), type=Reply)
    except TimeoutError as error:
        raise _silent(folder, f"no answer within {timeout_s:g} s") from error
    except OSError as error:
        raise _silent(folder, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _silent(folder, f"its answer was no reply: {error}") from error


async def ask(folder: SessionFolder, word: Word, candidate: str | None = None, timeout_s: float = TIMEOUT_S) -> Reply:
    """`ask_now` without blocking the event loop."""
    from anyio import to_thread

    return await to_thread.run_sync(ask_now, folder, word, candidate, timeout_s, abandon_on_cancel=True)


def _socket_path(folder: SessionFolder) -> Path:
    try:
        path = folder.socket_note.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        path = ""
    held = holder(folder)
    if held is not None and held.elsewhere:
        raise SessionError(
            f"Session {folder.id} runs on {held.hostname}, not here.", fix=f"Log in to {held.hostname} and try again."
        )
    if held is None or not path:
        raise SessionError(
            f"Session {folder.id} is not running." if held is None else f"Session {folder.id} takes no words yet.",
            fix="`deploytui sessions` lists which are running." if held is None else "Try again in a moment.",
        )
    return Path(path)


def _exchange(path: Path, line: bytes, timeout_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.settimeout(timeout_s)
        door.connect(str(path))
        door.sendall(line)
        answer = b""
        while not answer.endswith(b"\n") and (part := door.recv(LINE_CAP)):
            answer += part
        return answer


def _silent(folder: SessionFolder, why: str) -> SessionError:
    return SessionError(
        f"The runner of session {folder.id} does not answer.",
        why=why,
        fix=f"Look at {folder.runner_log}; if it hangs, end it with SIGTERM.",
    )
