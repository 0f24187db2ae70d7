"""GPUs without memory of their own: what they use is the host's, and every figure says so."""

import psutil
import pytest
from msgspec.structs import replace

from deploytui.check.devices import use_notes
from deploytui.check.hardware import Needs, hardware
from deploytui.check.node import read_node
from deploytui.engine.adapter import Adapter
from deploytui.profile.schema import Candidate
from deploytui.telemetry.nvml import Gpus
from tests.check.test_hardware import MODEL
from tests.telemetry.conftest import FakeDriver

WITHOUT = {"err_memory1": 3, "err_memory2": 3}


@pytest.mark.parametrize("state", [{"err_memory1": 3, "err_memory2": 3}, {"major": 12, "minor": 1, "total": 512}])
def test_a_gpu_without_memory_of_its_own_has_the_hosts_and_says_so(driver: FakeDriver, state: dict[str, int]) -> None:
    driver.set(0, **state, pid0=4711, pid_memory0=300)
    gpus = Gpus.open(driver.binding)
    for _ in range(2):
        (reading,) = gpus.read()
        assert (reading.memory_source, reading.total_bytes) == ("system-unified", psutil.virtual_memory().total)
        assert reading.used_bytes is not None
        assert 0 < reading.used_bytes < psutil.virtual_memory().total
    assert (gpus.devices[0].free_bytes() or 0) > 512
    assert gpus.devices[0].processes() == {4711: 300}


def test_a_slice_or_a_lost_gpu_never_has_the_hosts_memory(driver: FakeDriver) -> None:
    driver.set(0, mig=1, slices=1)
    driver.set(32, err_memory1=3, err_memory2=3)
    (reading,) = Gpus.open(driver.binding).read()
    assert (reading.memory_source, reading.total_bytes) == (None, None)
    driver.set(0, mig=0, major=12, minor=1)
    gpus = Gpus.open(driver.binding)
    driver.set(0, err_utilisation=15)
    gpus.read()
    assert gpus.read()[0].memory_source is None


def test_a_model_is_held_against_the_memory_that_the_gpu_shares(driver: FakeDriver) -> None:
    driver.set(0, **WITHOUT)
    node = read_node({}, driver.binding)
    (gpu,) = node.gpus
    assert (gpu.unified, gpu.total_bytes) == (True, psutil.virtual_memory().total)
    candidate = Candidate(name="a", engine="e", device="cuda")
    needs = Needs(context_tokens=64, concurrency=1)
    huge = replace(MODEL, bytes=psutil.virtual_memory().total * 2)
    small = replace(MODEL, bytes=1 << 20)
    refused, placed = (hardware(Adapter(), candidate, facts, node, needs) for facts in (huge, small))
    assert refused.fit is not None
    assert (refused.fit.verdict, refused.fit.on) == ("cannot_fit", "gpu")
    assert placed.fit is not None
    assert placed.fit.free_bytes is not None
    assert any("shares the host's memory" in note for note in placed.notes)


def test_what_else_runs_on_the_host_is_no_neighbour_on_the_gpu(driver: FakeDriver) -> None:
    driver.set(0, **WITHOUT)
    node = read_node({}, driver.binding)
    assert not any("in use" in note for note in use_notes(node.gpus, node))
