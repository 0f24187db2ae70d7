import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploytui.session.identity import process_alive, start_time
from deploytui.session.leftovers import dead_sessions, leftover_processes, mark, reap, reap_dead_sessions
from deploytui.session.lock import SessionLock
from tests.session.support import made

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

WAITS = "import sys; print('up', flush=True); sys.stdin.read()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAITS
PARENT = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.pause()'], start_new_session=True)\n"
    "print(child.pid, flush=True); sys.stdin.read()\n"
)


@contextmanager
def process(script: str, session: str | None) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A process with or without a session's mark, and the first line it said."""
    environment = {key: value for key, value in os.environ.items() if key != "DEPLOYTUI_SESSION"}
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=environment | (mark(session) if session else {}),
    ) as child:
        try:
            assert child.stdout is not None
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()


def test_what_a_dead_session_left_is_ended_and_others_live(tmp_path: Path) -> None:
    dead, alive = made(tmp_path), made(tmp_path)
    for folder in (dead, alive):
        folder.journal.touch()
    with (
        process(DEAF, dead.id) as (deaf, _),
        process(WAITS, alive.id) as (kept, _),
        process(WAITS, None) as (foreign, _),
        process(WAITS, "20200101-000000-unknown-0000") as (unknown, _),
        SessionLock.acquire(alive),
    ):
        reaped = reap_dead_sessions(tmp_path / "state", grace_s=0.1)
        assert [(one.pid, one.session) for one in reaped] == [(deaf.pid, dead.id)]
        assert deaf.wait(10) == -signal.SIGKILL
        assert [one.poll() for one in (kept, foreign, unknown)] == [None, None, None]
    assert reap_dead_sessions(tmp_path / "state") == []


def test_a_grandchild_in_a_session_of_its_own_is_found_after_its_parent_died(tmp_path: Path) -> None:
    folder = made(tmp_path)
    folder.journal.touch()
    with process(PARENT, folder.id) as (parent, said):
        grandchild = int(said)
        started = start_time(grandchild)
        parent.kill()
        parent.wait(10)
        assert process_alive(grandchild, started)
        reaped = reap_dead_sessions(tmp_path / "state")
        assert [one.pid for one in reaped] == [grandchild]
        assert not process_alive(grandchild, started)


def test_a_reused_pid_is_not_signalled(tmp_path: Path) -> None:
    from msgspec.structs import replace

    with process(WAITS, "some-session") as (child, _):
        (found,) = leftover_processes({"some-session"})
        assert found.pid == child.pid
        assert found.program == sys.executable
        assert reap([replace(found, started=found.started + 1)]) == []
        assert child.poll() is None
        assert reap([found]) == []
        assert child.wait(10) == -signal.SIGTERM


def test_this_process_and_its_ancestors_are_spared(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, sys\n"
        "from deploytui.session.leftovers import leftover_processes\n"
        "print([one.pid for one in leftover_processes({'mine'})])\n"
    )
    shell = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}], check=True)"
    done = subprocess.run(
        [sys.executable, "-c", shell],
        env=os.environ | mark("mine"),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"


def test_a_copy_of_a_running_session_does_not_count_as_dead(tmp_path: Path) -> None:
    folder = made(tmp_path)
    folder.journal.touch()
    with SessionLock.acquire(folder):
        copy = tmp_path / "other" / folder.id
        copy.mkdir(parents=True)
        (copy / "journal.jsonl").touch()
        (copy / "lock").write_bytes(folder.lock_file.read_bytes())
        assert dead_sessions(tmp_path / "other") == []
    assert dead_sessions(tmp_path / "state") == [folder.id]
