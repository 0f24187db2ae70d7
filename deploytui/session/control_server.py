"""The runner's end of the control socket."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import msgspec
from anyio.abc import SocketStream, TaskStatus
from anyio.streams.buffered import BufferedByteReceiveStream

from deploytui.errors import DeployError, SessionError
from deploytui.session.control import LINE_CAP, TIMEOUT_S, WORDS, Reply, Request
from deploytui.session.folder import SessionFolder

Handle = Callable[[Request], Reply]
PREFIX = "deploytui-"
LONGEST_BASE = 70
"""Unix socket paths end at about 100 bytes; a deeper runtime folder is not used."""


async def serve_control(
    folder: SessionFolder, handle: Handle, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Answer words until cancelled; nothing is left of the socket then. `task_status` tells when it can be asked."""
    with _socket_folder(folder) as door:
        try:
            listener = await anyio.create_unix_listener(door, mode=0o600)
        except OSError as error:
            raise _no_socket(error) from error
        async with listener:
            _write_note(folder, door)
            task_status.started()
            await listener.serve(lambda stream: _converse(stream, handle))


async def _converse(stream: SocketStream, handle: Handle) -> None:
    """One request, one reply; a client that goes away or says nothing costs the runner nothing."""
    async with stream:
        with (
            anyio.move_on_after(TIMEOUT_S),
            suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream),
        ):
            await stream.send(msgspec.json.encode(await _answer(stream, handle)) + b"\n")


async def _answer(stream: SocketStream, handle: Handle) -> Reply:
    try:
        line = await BufferedByteReceiveStream(stream).receive_until(b"\n", LINE_CAP)
        request = msgspec.json.decode(line, type=Request)
    except (anyio.IncompleteRead, anyio.DelimiterNotFound, msgspec.DecodeError, UnicodeDecodeError) as error:
        return Reply(ok=False, text=f"That is no request ({error}); the words are {', '.join(WORDS)}.")
    try:
        return handle(request)
    except DeployError as error:
        return Reply(ok=False, text=error.text())


@contextmanager
def _socket_folder(folder: SessionFolder) -> Iterator[Path]:
    """A new 0700 folder with a short path; it and the note are gone afterwards."""
    _clear_stale(folder)
    try:
        place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_base()))
    except OSError as error:
        raise _no_socket(error) from error
    try:
        yield place / "control.sock"
    finally:
        folder.socket_note.unlink(missing_ok=True)
        shutil.rmtree(place, ignore_errors=True)


def _base() -> Path:
    for text in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()):
        base = Path(text)
        if text and len(os.fsencode(base)) <= LONGEST_BASE and base.is_dir() and os.access(base, os.W_OK):
            return base
    return Path("/tmp")


def _write_note(folder: SessionFolder, door: Path) -> None:
    new = folder.socket_note.with_name("control.new")
    try:
        new.write_text(f"{door}\n", encoding="utf-8")
        new.replace(folder.socket_note)
    except OSError as error:
        raise _no_socket(error) from error


def _clear_stale(folder: SessionFolder) -> None:
    """Remove what a killed runner of this session left; only a folder of ours, of the name we give."""
    with suppress(OSError):
        place = Path(folder.socket_note.read_text(encoding="utf-8", errors="replace").strip()).parent
        if place.name.startswith(PREFIX) and place.lstat().st_uid == os.getuid():
            shutil.rmtree(place, ignore_errors=True)


def _no_socket(error: OSError) -> SessionError:
    return SessionError(
        "The control socket can't be made.",
        why=str(error),
        fix="Set TMPDIR or XDG_RUNTIME_DIR to a local folder you may write, with a short path.",
    )
