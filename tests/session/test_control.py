import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from deploytui.errors import SessionError, UsageError
from deploytui.session.control import Reply, Request, ask, ask_now
from deploytui.session.control_server import serve_control
from deploytui.session.folder import SessionFolder
from deploytui.session.lock import Holder, SessionLock
from tests.session.support import made
from tests.session.test_lock import write

pytestmark = pytest.mark.anyio


def echo(request: Request) -> Reply:
    if request.word == "kill":
        raise UsageError("Not now.", fix="Wait.")
    return Reply(ok=True, text=request.word, data={"candidate": request.candidate})


@asynccontextmanager
async def running(folder: SessionFolder, handle: Callable[[Request], Reply] = echo) -> AsyncIterator[None]:
    with SessionLock.acquire(folder), anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            await group.start(serve_control, folder, handle)
            yield
            group.cancel_scope.cancel()


async def test_a_word_reaches_the_runner_and_its_reply_comes_back(tmp_path: Path) -> None:
    folder = made(tmp_path)
    async with running(folder):
        assert await ask(folder, "skip", "a/b") == Reply(ok=True, text="skip", data={"candidate": "a/b"})
        assert await to_thread.run_sync(ask_now, folder, "status") == echo(Request(word="status"))


async def test_a_refused_word_is_a_reply_not_a_crash(tmp_path: Path) -> None:
    folder = made(tmp_path)
    async with running(folder):
        assert await ask(folder, "kill") == Reply(ok=False, text="Not now.\nWait.")
        assert (await ask(folder, "pause")).ok


async def test_many_ask_at_once(tmp_path: Path) -> None:
    folder, replies = made(tmp_path), list[Reply]()

    async def one(name: str) -> None:
        replies.append(await ask(folder, "skip", name))

    async with running(folder), anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(one, str(number))
    assert {reply.data["candidate"] for reply in replies} == {str(number) for number in range(20)}


async def test_the_socket_is_ours_alone_and_gone_afterwards(tmp_path: Path) -> None:
    folder = made(tmp_path)
    async with running(folder):
        door = Path(folder.socket_note.read_text(encoding="utf-8").strip())
        assert stat.S_IMODE(door.parent.stat().st_mode) == 0o700
    assert not door.parent.exists()
    assert not folder.socket_note.exists()


@pytest.mark.parametrize("said", [b"", b"hello\n", b'{"word":"dance"}\n', b"\xff\n", b"x" * 200_000])
async def test_rubbish_on_the_socket_harms_nobody(tmp_path: Path, said: bytes) -> None:
    folder = made(tmp_path)
    async with running(folder):
        door = folder.socket_note.read_text(encoding="utf-8").strip()
        stream = await anyio.connect_unix(door)
        async with stream:
            try:
                await stream.send(said) if said else await stream.send_eof()
                answer = await stream.receive()
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                answer = b'"ok":false, cut off'
            assert b'"ok":false' in answer
        assert (await ask(folder, "status")).ok


async def test_a_long_runtime_folder_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    folder = made(tmp_path)
    async with running(folder):
        assert (await ask(folder, "status")).ok
    assert list(deep.iterdir()) == []


async def test_what_a_killed_runner_left_of_its_socket_is_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = made(tmp_path)
    stale = tmp_path / "deploytui-stale"
    stale.mkdir()
    folder.socket_note.write_text(f"{stale / 'control.sock'}\n", encoding="utf-8")
    async with running(folder):
        assert not stale.exists()
        assert (await ask(folder, "status")).ok


def test_a_session_that_does_not_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is not running"):
        ask_now(made(tmp_path), "skip")


def test_a_session_of_another_host_names_that_host(tmp_path: Path) -> None:
    folder = made(tmp_path)
    write(folder, Holder(hostname="gpu-node-99", pid=1))
    with pytest.raises(SessionError, match="gpu-node-99"):
        ask_now(folder, "skip")


def test_a_dead_socket_and_a_silent_runner_are_said(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with SessionLock.acquire(folder):
        folder.socket_note.write_text("/nowhere/control.sock\n", encoding="utf-8")
        with pytest.raises(SessionError, match="does not answer"):
            ask_now(folder, "skip")
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.bind(str(tmp_path / "s"))
            deaf.listen()
            folder.socket_note.write_text(f"{tmp_path / 's'}\n", encoding="utf-8")
            with pytest.raises(SessionError) as caught:
                ask_now(folder, "skip", timeout_s=0.05)
    assert "no answer within 0.05 s" in caught.value.why
