"""Which GPUs a server that runs already works on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploytui.check.node import GpuNow, GpuProcess, Node
from deploytui.run.listener import listeners
from deploytui.run.mapping import gpus_of_server
from tests.cli.calls import WORKLOAD, process
from tests.host.mocks import mock
from tests.run.sessions import Done

TREE = """
import os, socket, sys
door = socket.create_server(("127.0.0.1", 0))
parent = os.getpid()
child = os.fork()
if child:
    if sys.argv[1] == "sibling":
        door.close()
    os.read(0, 1)
    sys.exit()
if sys.argv[1] == "sibling":
    other = os.fork()
    if other:
        print(door.getsockname()[1], other, flush=True)
    else:
        door.close()
else:
    print(door.getsockname()[1], os.getpid(), flush=True)
    door.close()
os.read(0, 1)
"""


@contextmanager
def serving(how: str) -> Iterator[tuple[int, int]]:
    """The port of a server, and the pid of the process of it that computes."""
    with subprocess.Popen(
        [sys.executable, "-c", TREE, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as server:
        assert server.stdout is not None
        port, worker = map(int, server.stdout.readline().split())
        yield port, worker
        os.killpg(server.pid, signal.SIGKILL)


def node(pid: int, name: str | None = "python") -> Node:
    holder = GpuProcess(pid=pid, name=name)
    foreign = GpuProcess(pid=os.getpid(), name="python")
    return Node(
        gpus=(
            GpuNow(uuid="GPU-a", index=0, name="card", processes=(foreign,)),
            GpuNow(uuid="GPU-b", index=1, name="card", processes=(holder,)),
        )
    )


@pytest.mark.parametrize("how", ["child", "sibling"])
def test_the_process_that_computes_need_not_be_the_one_that_listens(how: str) -> None:
    with serving(how) as (port, worker):
        assert worker not in listeners(port)
        found = gpus_of_server(f"http://127.0.0.1:{port}/v1", node(worker))
        assert [gpu.uuid for gpu in found] == ["GPU-b"]


def test_a_number_of_another_namespace_maps_nothing() -> None:
    with serving("child") as (port, worker):
        assert gpus_of_server(f"http://127.0.0.1:{port}", node(worker, name=None)) == ()


def test_where_nobody_listens_nothing_is_mapped() -> None:
    assert gpus_of_server("http://127.0.0.1:9", node(os.getpid())) == ()


@pytest.fixture
def driver_state(nvml_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    state = tmp_path / "nvml-state"
    monkeypatch.setenv("FAKE_NVML_STATE", str(state))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_folder))
    return state


def attached_run(folder: Path, port: int) -> Done:
    profile = folder / "case.toml"
    row = f'[[candidates]]\nname = "a"\nengine = "openai"\nbase_url = "http://127.0.0.1:{port}"\n'
    profile.write_text(WORKLOAD + row, encoding="utf-8")
    return process("run", profile, "--state-dir", folder / "state", "--json", "-", env={})


@pytest.mark.parametrize("seen", [True, False])
def test_a_measured_server_has_the_gpu_it_is_seen_on_or_a_note(tmp_path: Path, driver_state: Path, seen: bool) -> None:
    with mock("--port", "0", "--model", "m") as engine:
        pid = engine.process.pid if seen else 2**22 - 1
        driver_state.write_text(f"-1 count 2\n1 pid0 {pid}\n", encoding="utf-8")
        done = attached_run(tmp_path, engine.port)
    row = done.row("a")
    assert row["run"] == "ok", done.err
    assert len(row["runtime"]["gpu_uuids"]) == int(seen)
    assert ("device mapping assumed" in done.err) is not seen
