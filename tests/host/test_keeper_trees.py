"""Process trees as engines make them: titles changed, workers in sessions of their own, parents that are gone."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.keepers import Kept, keeper, python
from tests.host.living import alive

WORKERS = """
trap '' TERM
(exec -a VLLM::Worker_TP0 sleep 3600) & echo worker $!
setsid bash -c 'trap "" TERM; (exec -a VLLM::Worker_TP1 sleep 3600) & echo worker $!'
echo worker $$
wait
"""
VLLM = f"""
import subprocess, time
core = subprocess.Popen(["VLLM::EngineCore", "-c", {WORKERS!r}], executable="/bin/bash", start_new_session=True)
time.sleep(3600)
"""
"""API server → EngineCore in a session of its own → a worker, and one that was forked twice. All deaf to SIGTERM."""

SGLANG = """
import os, signal, subprocess, time
def started(title, **more):
    child = subprocess.Popen([title, "3600"], executable="/bin/sleep", **more)
    print("worker", child.pid, flush=True)
    return child
scheduler = started("sglang::scheduler_TP0")
started("sglang::detokenizer")
started("sglang::data_parallel", start_new_session=True)
scheduler.wait()
print("Received sigquit from a child process", flush=True)
os.kill(0, signal.SIGKILL)
"""
"""When its scheduler dies, the server kills its own process group, itself included."""


@pytest.fixture
def namesake() -> Iterator[int]:
    """Somebody else's process of the same name."""
    with subprocess.Popen(["VLLM::EngineCore", "3600"], executable="/bin/sleep") as process:
        yield process.pid
        process.kill()


def _started(kept: Kept, code: str, workers: int) -> list[int]:
    """The engine's processes, its main one first."""
    kept.order(python(code), grace_s=0.5)
    pid = int(kept.hear("started")["pid"])
    found: list[str] = []
    while len(found) < workers:
        found = kept.logged(r"worker \d+\n")
    pids = [pid, *(int(line.split()[1]) for line in found)]
    assert all(map(alive, pids))
    return pids


def _titles(pids: list[int]) -> list[str]:
    return [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode() for pid in pids]


def test_of_a_vllm_whose_server_was_killed_nothing_is_left(tmp_path: Path, namesake: int) -> None:
    with keeper(tmp_path) as kept:
        pids = _started(kept, VLLM, workers=3)
        assert sorted(_titles(pids[1:])) == ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"]
        os.kill(pids[0], signal.SIGKILL)
        assert kept.hear("exited")["signal"] == signal.SIGKILL
        assert kept.hear("gone")["survivors"] == []
        assert not any(map(alive, pids))
        assert alive(namesake)


def test_of_a_vllm_whose_core_was_killed_nothing_is_left(tmp_path: Path, namesake: int) -> None:
    with keeper(tmp_path) as kept:
        pids = _started(kept, VLLM, workers=3)
        core = next(pid for pid, title in zip(pids, _titles(pids), strict=True) if title == "VLLM::EngineCore")
        os.kill(core, signal.SIGKILL)
        kept.tell({"do": "stop"})
        assert kept.hear("gone")["survivors"] == []
        assert not any(map(alive, pids))
        assert alive(namesake)


def test_of_an_sglang_whose_scheduler_was_killed_nothing_is_left(tmp_path: Path, namesake: int) -> None:
    with keeper(tmp_path) as kept:
        pids = _started(kept, SGLANG, workers=3)
        os.kill(pids[1], signal.SIGKILL)
        assert kept.hear("exited")["signal"] == signal.SIGKILL
        assert "Received sigquit" in kept.text
        assert kept.hear("gone")["survivors"] == []
        assert not any(map(alive, pids))
        assert alive(namesake)
