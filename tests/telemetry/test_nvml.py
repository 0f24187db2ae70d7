from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploytui.record.facts import Gpu
from deploytui.telemetry.environment import read_environment
from deploytui.telemetry.nvml import Gpus, read_gpus, usable_gpus, visible_uuids
from tests.telemetry.conftest import FakeDriver

LOST, NOT_SUPPORTED = 15, 3
FIELDS = {
    "memory": ("used_bytes", 1234),
    "utilisation": ("utilisation", 93.0),
    "temperature": ("temperature_c", 64.0),
    "power": ("power_w", 612.0),
    "limit": ("power_limit_w", 700.0),
}


def busy(driver: FakeDriver, gpu: int = 0) -> None:
    driver.set(gpu, used=1234, utilisation=93, temperature=64, power_mw=612000, limit_mw=700000)


def uuid(gpu: int) -> str:
    return f"GPU-{gpu:08d}-0000-0000-0000-000000000000"


def test_the_gpus_of_a_node_are_found(driver: FakeDriver) -> None:
    driver.set(count=2)
    found = read_gpus(driver.binding)
    assert [(gpu.uuid, gpu.index, gpu.name) for gpu in found.gpus] == [
        (uuid(0), 0, "NVIDIA H200"),
        (uuid(1), 1, "NVIDIA H200"),
    ]
    assert (found.gpus[0].total_bytes, found.gpus[0].compute_capability) == (80000, "9.0")
    assert (found.driver, found.cuda, found.missing) == ("580.95.05", "13.0", None)


def test_every_figure_is_read_in_its_unit(driver: FakeDriver) -> None:
    busy(driver)
    (reading,) = Gpus.open(driver.binding).read()
    assert {name: getattr(reading, name) for name, _ in FIELDS.values()} == dict(FIELDS.values())
    assert (reading.total_bytes, reading.memory_source, reading.lost) == (80000, "nvml-v2", None)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(sorted(FIELDS))), st.sampled_from([2, 3, 4, 13, 25]))
def test_fields_a_card_lacks_take_no_other_with_them(driver: FakeDriver, lacking: set[str], error: int) -> None:
    driver.reset()
    busy(driver)
    for name in lacking:
        calls = ("err_memory1", "err_memory2") if name == "memory" else (f"err_{name}",)
        driver.set(0, **dict.fromkeys(calls, error))
    (reading,) = Gpus.open(driver.binding).read()
    for name, (field, value) in FIELDS.items():
        if (name, error) == ("memory", NOT_SUPPORTED) and name in lacking:
            assert reading.memory_source == "system-unified"
            continue
        assert getattr(reading, field) == (None if name in lacking else value)
    assert reading.lost is None


def test_a_field_a_card_lacks_is_not_asked_again(driver: FakeDriver) -> None:
    gpus = Gpus.open(driver.binding)
    driver.set(0, err_power=3)
    gpus.read()
    driver.set(0, err_power=0)
    assert gpus.read()[0].power_w is None


def test_a_passing_failure_is_missing_once(driver: FakeDriver) -> None:
    gpus = Gpus.open(driver.binding)
    driver.set(0, err_memory2=999, err_power=999, used=5)
    (reading,) = gpus.read()
    assert (reading.used_bytes, reading.memory_source, reading.power_w) == (None, None, None)
    driver.set(0, err_memory2=0, err_power=0)
    (reading,) = gpus.read()
    assert (reading.used_bytes, reading.memory_source, reading.power_w) == (5, "nvml-v2", 75.0)


def test_memory_without_what_the_driver_reserves_is_preferred(driver: FakeDriver) -> None:
    driver.set(0, used=8, reserved=904)
    assert Gpus.open(driver.binding).read()[0].used_bytes == 8
    driver.set(0, err_memory2=13)
    reading = Gpus.open(driver.binding).read()[0]
    assert (reading.used_bytes, reading.memory_source) == (912, "nvml-v1")


def test_a_binding_without_the_newer_call_uses_the_older(driver: FakeDriver) -> None:
    del driver.binding.nvmlMemory_v2
    assert Gpus.open(driver.binding).read()[0].memory_source == "nvml-v1"


@pytest.mark.parametrize("used", [-1, 80001])
def test_all_ones_and_more_than_there_is_are_no_reading(driver: FakeDriver, used: int) -> None:
    driver.set(0, used=used, utilisation=2**32 - 1, power_mw=2**32 - 1, temperature=2**32 - 1)
    (reading,) = Gpus.open(driver.binding).read()
    assert (reading.used_bytes, reading.utilisation, reading.power_w, reading.temperature_c) == (None, None, None, None)
    assert reading.total_bytes == 80000


def test_a_total_of_nothing_is_unknown(driver: FakeDriver) -> None:
    driver.set(0, total=0)
    assert Gpus.open(driver.binding).read()[0].total_bytes is None
    assert read_gpus(driver.binding).gpus[0].total_bytes is None


def test_a_lost_gpu_is_marked_and_the_others_go_on(driver: FakeDriver) -> None:
    driver.set(count=2)
    busy(driver, 1)
    gpus = Gpus.open(driver.binding)
    assert [reading.lost for reading in gpus.read()] == [None, None]
    driver.set(0, error=LOST)
    lost, fine = gpus.read()
    assert lost.lost == "GPU is lost"
    assert lost.used_bytes is None
    assert (fine.lost, fine.used_bytes) == (None, 1234)
    driver.set(0, error=0)
    assert gpus.read()[0].lost == "GPU is lost"


def test_a_gpu_lost_before_the_start_is_still_listed(driver: FakeDriver) -> None:
    driver.set(count=2)
    driver.set(0, err_handle=LOST)
    lost, fine = Gpus.open(driver.binding).read()
    assert (lost.uuid, lost.lost, fine.uuid) == ("unknown-gpu-0", "GPU is lost", uuid(1))


def test_a_mig_slice_has_its_own_memory_and_no_utilisation(driver: FakeDriver) -> None:
    driver.set(count=2)
    driver.set(0, mig=1, slices=2, total=80000, utilisation=50)
    driver.set(32, total=20000, used=3)
    driver.set(33, total=20000, used=4)
    gpus = Gpus.open(driver.binding)
    first, second, whole = gpus.read()
    assert (first.uuid, first.index, first.total_bytes, first.used_bytes) == (slice_uuid(0), 0, 20000, 3)
    assert (second.uuid, second.used_bytes, second.utilisation) == (slice_uuid(1), 4, None)
    assert (whole.uuid, whole.index) == (uuid(1), 1)
    assert gpus.inventory().gpus[0].compute_capability == "9.0"


def slice_uuid(place: int) -> str:
    return f"MIG-{32 + place:08d}-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("error", "said", "remedy"),
    [
        (18, "version mismatch", "reload the driver or reboot"),
        (9, "Driver Not Loaded", "modprobe nvidia"),
        (4, "Insufficient Permissions", "/dev/nvidia*"),
        (999, "Unknown Error", "nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_start_is_one_line_with_a_remedy(
    driver: FakeDriver, error: int, said: str, remedy: str
) -> None:
    driver.set(init_error=error)
    found = read_gpus(driver.binding)
    assert found.gpus == ()
    assert found.missing is not None
    assert said in found.missing
    assert remedy in found.missing
    assert "\n" not in found.missing


def test_a_driver_without_a_gpu_says_so(driver: FakeDriver) -> None:
    driver.set(count=0)
    found = read_gpus(driver.binding)
    assert (found.gpus, found.driver) == ((), "580.95.05")
    assert found.missing is not None
    assert "no GPU" in found.missing
    driver.set(err_count=999)
    assert "Unknown Error" in str(read_gpus(driver.binding).missing)


def test_names_in_bytes_are_decoded() -> None:
    class Quiet(Exception):
        value = 4

    def barred(*_: object) -> Any:
        raise Quiet("Insufficient Permissions")

    binding = SimpleNamespace(
        NVMLError=Quiet,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: b"GPU-1",
        nvmlDeviceGetName=lambda handle: b"Tesla \xff",
        nvmlSystemGetDriverVersion=barred,
        nvmlSystemGetCudaDriverVersion=barred,
        nvmlDeviceGetMemoryInfo=barred,
    )
    found = read_gpus(binding)
    assert found.gpus == (Gpu(uuid="GPU-1", index=0, name="Tesla \ufffd"),)
    assert (found.driver, found.missing) == (None, None)


GPUS = (
    Gpu(uuid="GPU-aaaa1111-0", index=0, name="A"),
    Gpu(uuid="GPU-aaaa2222-0", index=1, name="B"),
    Gpu(uuid="MIG-bbbb1111-0", index=2, name="C slice"),
    Gpu(uuid="MIG-bbbb2222-0", index=2, name="C slice"),
)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        (" ", []),
        ("0", [0]),
        ("1,0", [1, 0]),
        (" 1 , 0 ,", [1, 0]),
        ("0,0,1,0", [0, 1]),
        ("0,-1,1", [0]),
        ("-1", []),
        ("0,7,1", [0]),
        ("NoDevFiles", []),
        ("GPU-aaaa2", [1]),
        ("gpu-AAAA2222-0", [1]),
        ("GPU-aaaa", []),
        ("GPU-aaaa1,GPU-aaaa,GPU-aaaa2", [0]),
        ("MIG-bbbb2222-0", [3]),
        ("2", [2]),
        ("²", []),
    ],
)
def test_the_gpus_a_process_may_use_are_read_as_cuda_reads_them(text: str | None, places: list[int]) -> None:
    assert visible_uuids(text, GPUS) == tuple(GPUS[place].uuid for place in places)
    assert usable_gpus(text, GPUS) == tuple(GPUS[place] for place in places)


def test_the_environment_names_hardware_and_versions(driver: FakeDriver) -> None:
    driver.set(count=2)
    environment = read_environment(driver.binding)
    assert environment.label == "on 2× NVIDIA H200"
    assert (environment.driver, environment.cuda, environment.gpu_missing) == ("580.95.05", "13.0", None)
    driver.set(init_error=18)
    without = read_environment(driver.binding)
    assert without.label == "for this CPU host only"
    assert without.gpu_missing is not None
