"""Processes that a session did not start: whatever they are called and wherever they stand, none is ever signalled."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploytui.host import keeper_procs
from deploytui.record.events import PhaseStarted
from tests.run.sessions import (
    assert_nothing_left,
    command,
    events,
    only_session,
    wait_for,
    wait_for_event,
    write_profile,
)

RUDE = ["--deaf", "--grandchild", "--daemon", "--itl-ms", "100"]


def alive(pid: int) -> bool:
    seen = keeper_procs.look(pid)
    return seen is not None and seen.state not in "ZX"


@contextmanager
def group_with_a_bystander(*argv: str, env: dict[str, str]) -> Iterator[tuple[int, int]]:
    """A command whose child and group member is a process that it did not start; the pids of both.

    The bystander is called like the mock's grandchildren, and is the runner's own child: a shell began both.
    """
    script = 'sleep 3600 >/dev/null 2>&1 & echo $!; exec "$@"'
    with subprocess.Popen(
        ("sh", "-c", script, "sh", *argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **env},
    ) as process:
        assert process.stdout is not None
        bystander = int(process.stdout.readline())
        try:
            yield process.pid, bystander
            process.communicate(timeout=120)
        finally:
            os.kill(bystander, signal.SIGKILL)


def _measuring(state: Path) -> bool:
    return any(isinstance(event, PhaseStarted) and event.phase == "measuring" for event in events(state))


def test_who_stands_in_the_runners_group_and_is_its_child_lives_on(tmp_path: Path) -> None:
    state = tmp_path / "state"
    argv = command(state, "run", write_profile(tmp_path, {"one": RUDE}))
    with group_with_a_bystander(*argv, env={}) as (runner, bystander):
        wait_for(lambda: _measuring(state), "measuring")
        assert os.getpgid(bystander) == os.getpgid(runner)
        for _ in range(2):
            os.kill(runner, signal.SIGTERM)
        assert_nothing_left(only_session(state).name)
        assert alive(bystander)


def test_a_mark_of_an_unknown_session_is_nobodys(tmp_path: Path) -> None:
    state = tmp_path / "state"
    argv = command(state, "run", write_profile(tmp_path, {"one": []}, requests=2))
    with group_with_a_bystander(*argv, env={"DEPLOYTUI_SESSION": "20200101-000000-other-ffff"}) as (_, bystander):
        wait_for(lambda: _measuring(state), "measuring")
        wait_for_event(state, PhaseStarted)
        assert alive(bystander)


def test_a_process_that_got_the_number_of_another_is_not_signalled() -> None:
    with subprocess.Popen(("sleep", "3600")) as process:
        seen = keeper_procs.look(process.pid)
        assert seen is not None
        keeper_procs.send(seen._replace(start=seen.start - 1), signal.SIGKILL)
        assert process.poll() is None
        keeper_procs.send(seen, signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
