"""Engines in containers, with a stand-in for the runtime: they serve, and none of them is there afterwards."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploytui.record.engine_events import EngineRead
from deploytui.record.events import PhaseStarted
from deploytui.run.containers import NOTE, remove_left
from tests.run.sessions import begin, deploytui, ended, events, kill, only_session, wait_for, write_profile

STANDIN = Path(__file__).parents[1] / "data" / "standin_docker.py"
SLOW = ["--ttft-ms", "50", "--itl-ms", "10"]


@dataclass
class Runtime:
    """A container runtime that remembers what it was asked."""

    folder: Path
    daemon: "subprocess.Popen[bytes]"

    def asked(self, word: str) -> list[list[str]]:
        """The argv of each call that begins with this word."""
        log = self.folder / "argv.jsonl"
        rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [row for row in rows if row[0] == word]

    def containers(self) -> list[int]:
        """Pids of the containers that run."""
        text = Path(f"/proc/{self.daemon.pid}/task")
        return [int(word) for task in text.iterdir() for word in (task / "children").read_text().split()]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """`docker` on PATH."""
    folder = tmp_path / "docker"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{STANDIN}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("STANDIN_FOLDER", str(folder))
    with subprocess.Popen([sys.executable, "-I", STANDIN, "daemon", folder], stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"ready\n"
        runtime = Runtime(folder, daemon)
        yield runtime
        for pid in runtime.containers():
            os.kill(pid, signal.SIGKILL)
        daemon.kill()


def profile(folder: Path, *args: str, extra: str = "") -> Path:
    """A profile of one mock engine in a container."""
    path = write_profile(folder, {"boxed": args})
    text = path.read_text() + f'container = {{ image = "mock:1", args = ["--shm-size", "1g"] }}\n{extra}'
    path.write_text(text)
    return path


def test_an_engine_serves_from_its_container_and_is_removed(tmp_path: Path, docker: Runtime) -> None:
    path = profile(tmp_path, *SLOW, extra='env = { MODEL_WORD = "swordfish" }\n')
    done = deploytui(tmp_path / "state", "run", path, "--json", "-", "--trust")
    assert done.row("boxed")["run"] == "ok", done.err
    (ran,) = docker.asked("run")
    name = ran[ran.index("--name") + 1]
    assert name == f"deploytui-{only_session(tmp_path / 'state').name}-boxed"
    assert ["rm", "--force", name] in docker.asked("rm")
    assert docker.containers() == []
    assert ran[ran.index("--shm-size") + 1] == "1g"
    assert "MODEL_WORD" in ran
    assert "swordfish" not in " ".join(ran)
    engine = [event.engine for event in events(tmp_path / "state") if isinstance(event, EngineRead)][-1]
    assert engine.container == "mock:1@sha256:abcd"
    assert (engine.argv[:2], engine.python) == (("docker", "run"), "python3")
    # Not the memory of the client that waits, but of what is in the container.
    assert done.row("boxed")["metrics"]["peak_host_gib"] > 0


def test_a_container_that_ignores_its_client_is_ended_by_name(tmp_path: Path, docker: Runtime) -> None:
    (docker.folder / "stubborn").touch()
    done = deploytui(tmp_path / "state", "run", profile(tmp_path, *SLOW, "--deaf"), "--json", "-", "--trust")
    assert done.row("boxed")["run"] == "ok", done.err
    assert docker.containers() == []


def test_why_an_engine_failed_is_read_through_the_container(tmp_path: Path, docker: Runtime) -> None:
    row = deploytui(tmp_path / "state", "run", profile(tmp_path, "--oom"), "--json", "-", "--trust").row("boxed")
    assert (row["status"], row["failure"]["kind"]) == ("load_failed", "oom")
    assert docker.containers() == []


def test_a_container_that_cannot_be_removed_is_said(tmp_path: Path, docker: Runtime) -> None:
    for word in ("unremovable", "stubborn"):
        (docker.folder / word).touch()
    done = deploytui(tmp_path / "state", "run", profile(tmp_path, *SLOW, "--deaf"), "--json", "-", "--trust")
    assert "could not be removed" in done.err
    (pid,) = docker.containers()
    os.kill(pid, signal.SIGKILL)


def test_what_two_kills_left_is_removed_at_the_next_start(tmp_path: Path, docker: Runtime) -> None:
    (docker.folder / "stubborn").touch()
    state, path = tmp_path / "state", profile(tmp_path, "--deaf", "--itl-ms", "200")
    process = begin(state, "run", path, "--trust")
    wait_for(
        lambda: any(isinstance(event, PhaseStarted) and event.phase == "measuring" for event in events(state)),
        "measuring",
    )
    dead = only_session(state).name
    kill(process.pid)
    ended(process)
    assert len(docker.containers()) == 1
    (docker.folder / "stubborn").unlink()
    again = deploytui(state, "run", profile(tmp_path, *SLOW), "--json", "-", "--trust")
    assert f"Removed the container deploytui-{dead}-boxed" in again.err
    assert again.row("boxed")["run"] == "ok"
    assert docker.containers() == []


def test_what_cannot_be_asked_for_is_not_taken_for_gone(tmp_path: Path, docker: Runtime) -> None:
    (docker.folder / "stubborn").touch()
    state = tmp_path / "state"
    process = begin(state, "run", profile(tmp_path, *SLOW, "--deaf"), "--trust")
    wait_for(
        lambda: any(isinstance(event, PhaseStarted) and event.phase == "measuring" for event in events(state)),
        "measuring",
    )
    (docker.folder / "unreachable").touch()
    assert "could not be removed" in ended(process).err
    assert len(docker.containers()) == 1
    assert remove_left(state) == []
    (docker.folder / "unreachable").unlink()
    assert remove_left(state) == [f"deploytui-{only_session(state).name}-boxed"]
    assert docker.containers() == []


def test_a_note_that_names_another_container_is_not_believed(tmp_path: Path, docker: Runtime) -> None:
    state = tmp_path / "state"
    deploytui(state, "run", profile(tmp_path, "--oom"), "--trust")
    note = only_session(state) / "candidates" / "boxed" / NOTE
    assert not note.exists()
    before = len(docker.asked("rm"))
    note.write_text('{"container": {"image": "x"}, "name": "postgres"}')
    assert remove_left(state) == []
    note.write_text("{")
    assert remove_left(state) == []
    assert len(docker.asked("rm")) == before


def test_a_runtime_that_is_not_installed_is_said_before_anything_runs(tmp_path: Path) -> None:
    path = write_profile(tmp_path, {"boxed": SLOW})
    path.write_text(path.read_text() + 'container = { image = "mock:1", runtime = "podman" }\n')
    row = deploytui(tmp_path / "state", "run", path, "--json", "-", "--trust").row("boxed")
    assert (row["status"], row["failure"]["kind"]) == ("unsupported", "not_installed")
    assert "podman" in row["failure"]["what"]
