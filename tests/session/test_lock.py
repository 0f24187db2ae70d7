import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from deploytui.errors import SessionError
from deploytui.session.folder import SessionFolder
from deploytui.session.identity import boot_id, hostname, process_alive, process_facts, start_time
from deploytui.session.lock import Holder, SessionLock, holder, last_holder
from tests.session.support import made, wait_until

HOLD = (
    "import sys; from pathlib import Path; from deploytui.session.folder import SessionFolder\n"
    "from deploytui.session.lock import SessionLock\n"
    "lock = SessionLock.acquire(SessionFolder(Path(sys.argv[1]))); print('held', flush=True); sys.stdin.read()\n"
)


@contextmanager
def held_elsewhere(folder: SessionFolder) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the session until its standard input closes."""
    argv = [sys.executable, "-c", HOLD, str(folder.path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def write(folder: SessionFolder, who: Holder) -> None:
    folder.lock_file.write_bytes(msgspec.json.encode(who))


def test_nobody_holds_a_new_session(tmp_path: Path) -> None:
    assert holder(made(tmp_path)) is None


def test_the_holder_is_seen_and_living(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with held_elsewhere(folder) as process:
        seen = holder(folder)
        assert seen is not None
        assert (seen.pid, seen.hostname, seen.boot_id) == (process.pid, hostname(), boot_id())
        assert seen.alive()
        assert not seen.elsewhere


def test_a_second_runner_is_refused_by_name(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with held_elsewhere(folder) as process, pytest.raises(SessionError, match=f"process {process.pid} on"):
        SessionLock.acquire(folder)


def test_a_killed_runner_leaves_the_session_free(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with held_elsewhere(folder) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert holder(folder) is None
        left = last_holder(folder)
        assert left is not None
        assert left.pid == process.pid
        assert not left.alive()
        with SessionLock.acquire(folder):
            seen = holder(folder)
            assert seen is not None
            assert seen.pid == os.getpid()


def test_a_released_session_says_nothing_of_its_holder(tmp_path: Path) -> None:
    folder = made(tmp_path)
    lock = SessionLock.acquire(folder)
    lock.release()
    lock.release()
    assert holder(folder) is None
    assert last_holder(folder) is None


def test_looking_does_not_stop_a_runner_from_starting(tmp_path: Path) -> None:
    folder = made(tmp_path)
    looker = (
        "import sys; from pathlib import Path; from deploytui.session.folder import SessionFolder\n"
        "from deploytui.session.lock import holder\nprint('looking', flush=True)\n"
        "while True: holder(SessionFolder(Path(sys.argv[1])))\n"
    )
    folder.lock_file.touch()
    with subprocess.Popen([sys.executable, "-c", looker, str(folder.path)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(50):
                SessionLock.acquire(folder, patience_s=20.0).release()
        finally:
            process.kill()


def test_a_session_of_another_host_is_read_only_here(tmp_path: Path) -> None:
    folder = made(tmp_path)
    write(folder, Holder(hostname="gpu-node-99", boot_id="b", pid=1, started=1))
    seen = holder(folder)
    assert seen is not None
    assert seen.elsewhere
    assert not seen.alive()
    with pytest.raises(SessionError, match="read-only here") as caught:
        SessionLock.acquire(folder)
    assert "gpu-node-99" in caught.value.fix


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"pid": "x"}'])
def test_a_damaged_lock_file_that_nobody_locks_is_free(tmp_path: Path, content: bytes) -> None:
    folder = made(tmp_path)
    folder.lock_file.write_bytes(content)
    assert holder(folder) is None
    with SessionLock.acquire(folder):
        assert holder(folder) is not None


def test_a_reused_pid_or_another_boot_is_not_the_holder() -> None:
    pid = os.getpid()
    me = Holder(hostname=hostname(), boot_id=boot_id(), pid=pid, started=start_time(pid))
    assert me.alive()
    assert not msgspec.structs.replace(me, started=1).alive()
    assert not msgspec.structs.replace(me, boot_id="another").alive()
    assert not msgspec.structs.replace(me, pid=None).alive()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_zombie_is_dead() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    try:
        wait_until(lambda: (facts := process_facts(process.pid)) is not None and facts.state == "Z")
        os.kill(process.pid, 0)
        assert not process_alive(process.pid, start_time(process.pid))
    finally:
        process.wait(10)
    assert process_facts(process.pid) is None


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="can't be written"):
        SessionLock.acquire(SessionFolder(tmp_path / "gone"))
    assert holder(SessionFolder(tmp_path / "gone")) is None
