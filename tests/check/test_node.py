"""The node as it is right now, through the real binding on a driver library whose state the test writes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from deploytui.check import node as nodes
from deploytui.check.node import GpuProcess, process_name, read_node
from deploytui.telemetry.host import memory_free
from tests.telemetry.conftest import FakeDriver
from tests.telemetry.conftest import driver as driver  # noqa: PLC0414 a fixture

GIB = 1 << 30
MIG_LINE = "MIG-00000032-1111-2222-3333-444444444444"


def uuid(gpu: int) -> str:
    return f"GPU-{gpu:08d}-0000-0000-0000-000000000000"


@pytest.fixture
def neighbour() -> Iterator[int]:
    """A process of somebody else, with a title of its own."""
    code = "import os, sys; os.read(0, 1)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.communicate()


def test_each_gpu_is_read_with_its_own_figures(driver: FakeDriver) -> None:
    driver.set(count=2)
    driver.set(0, total=80 * GIB, used=10 * GIB, reserved=GIB)
    driver.set(1, total=16 * GIB, used=GIB, major=7, minor=5)
    first, second = read_node({}, driver.binding).gpus
    assert (first.uuid, first.index, first.compute_capability) == (uuid(0), 0, (9, 0))
    assert (first.total_bytes, first.used_bytes, first.free_bytes) == (80 * GIB, 10 * GIB, 69 * GIB)
    assert (second.compute_capability, second.free_bytes) == ((7, 5), 15 * GIB)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1", [1]),
        ("1,0", [1, 0]),
        (uuid(1), [1]),
        ("GPU-00000001", [1]),
        ("", []),
        (" 0 , 0 ", [0]),
        ("0,-1,1", [0]),
        ("-1", []),
    ],
)
def test_only_gpus_this_process_may_use_are_offered(driver: FakeDriver, text: str, found: list[int]) -> None:
    driver.set(count=2)
    node = read_node({"CUDA_VISIBLE_DEVICES": text}, driver.binding)
    assert [gpu.index for gpu in node.gpus] == found
    assert node.hidden == 2 - len(found)
    assert (node.gpu_missing is None) == bool(found)
    if not found:
        assert f"CUDA_VISIBLE_DEVICES={text!r}" in str(node.gpu_missing)


def test_a_mig_slice_has_its_own_memory_and_its_parents_capability(driver: FakeDriver) -> None:
    driver.set(0, mig=1, slices=1, total=80 * GIB, used=60 * GIB, major=8, minor=0)
    driver.set(32, total=20 * GIB, used=GIB)
    (gpu,) = read_node({"CUDA_VISIBLE_DEVICES": MIG_LINE}, driver.binding).gpus
    assert (gpu.uuid, gpu.total_bytes, gpu.free_bytes) == (MIG_LINE, 20 * GIB, 19 * GIB)
    assert gpu.compute_capability == (8, 0)


def test_who_uses_a_gpu_is_told_with_name_and_memory(driver: FakeDriver, neighbour: int) -> None:
    driver.set(0, total=80 * GIB, used=40 * GIB, pid0=neighbour, pid_memory0=39 * GIB)
    (gpu,) = read_node({}, driver.binding).gpus
    assert gpu.processes == (GpuProcess(pid=neighbour, name=Path(sys.executable).name, bytes=39 * GIB),)


@pytest.mark.parametrize("told", [-1, 2**64 - 1 - 2**64, 90 * GIB])
def test_memory_of_a_process_that_is_not_told_is_unknown(driver: FakeDriver, neighbour: int, told: int) -> None:
    driver.set(0, total=80 * GIB, used=40 * GIB, pid0=neighbour, pid_memory0=told)
    assert read_node({}, driver.binding).gpus[0].processes[0].bytes is None


def test_a_pid_that_means_nothing_here_has_no_name(driver: FakeDriver) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    driver.set(0, total=80 * GIB, used=40 * GIB, pid0=gone.pid, pid_memory0=GIB)
    assert read_node({}, driver.binding).gpus[0].processes == (GpuProcess(pid=gone.pid, bytes=GIB),)


def test_in_a_container_a_pid_may_be_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "HOST_PIDS", "pid:[1]")
    assert process_name(os.getpid()) is None


def test_processes_of_our_sessions_are_told_apart(driver: FakeDriver) -> None:
    code = "import sys; print(flush=True); sys.stdin.read()"
    environment = {**os.environ, "DEPLOYTUI_SESSION": "s1"}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as ours:
        assert ours.stdout is not None
        ours.stdout.readline()
        driver.set(0, total=80 * GIB, pid0=ours.pid)
        assert read_node({}, driver.binding).gpus[0].processes[0].session == "s1"
        ours.kill()


def test_a_driver_that_lists_no_processes_takes_nothing_else_away(driver: FakeDriver) -> None:
    driver.set(0, total=80 * GIB, used=GIB, err_processes=3, err_graphics=13)
    (gpu,) = read_node({}, driver.binding).gpus
    assert (gpu.processes, gpu.used_bytes) == ((), GIB)


def test_a_lost_gpu_is_listed_as_lost(driver: FakeDriver) -> None:
    driver.set(count=2)
    driver.set(0, err_memory2=15)
    lost, fine = read_node({}, driver.binding).gpus
    assert (lost.lost, lost.free_bytes, fine.lost) == ("GPU is lost", None, None)


def test_without_a_driver_the_host_is_still_read(driver: FakeDriver) -> None:
    driver.set(init_error=9)
    node = read_node({}, driver.binding)
    assert node.gpus == ()
    assert "Driver Not Loaded" in str(node.gpu_missing)
    assert node.host_free_bytes


def test_free_host_memory_is_what_the_control_group_leaves(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(str(GIB))
    (tmp_path / "memory.current").write_text(str(GIB // 2))
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {GIB // 8}\n")
    assert memory_free(tmp_path) == GIB // 2 + GIB // 8
    (tmp_path / "memory.current").write_text(str(2 * GIB))
    assert memory_free(tmp_path) == 0
    (tmp_path / "memory.max").write_text("max")
    assert 0 < memory_free(tmp_path) <= psutil.virtual_memory().total
