from hypothesis import given
from hypothesis import strategies as st

from deploytui.record.facts import Band
from deploytui.telemetry.messages import DeviceReading, Sample
from deploytui.telemetry.rollup import NodeWindow, RollupWindow, device_bytes, tree_bytes, worst_above

KNOWN = st.none() | st.integers(0, 1 << 40)


def sample(*used: int | None, rss: dict[int, int | None] | None = None, cpu: float | None = None) -> Sample:
    devices = tuple(
        DeviceReading(uuid=f"GPU-{place}", index=place, name="H", used_bytes=value, utilisation=value)
        for place, value in enumerate(used)
    )
    return Sample(at_ns=1, devices=devices, rss=rss or {}, cpu_percent=cpu, host_used_bytes=7, host_total_bytes=9)


def test_the_worst_device_above_its_own_baseline_counts() -> None:
    baseline = {f"GPU-{place}": 1 for place in range(4)}
    assert worst_above(sample(40, 41, 40, 79), baseline) == 78
    assert worst_above(sample(40, 41, 40, 79), {"GPU-0": 1, "GPU-1": 40}) == 39


def test_a_device_that_is_not_told_might_be_the_worst() -> None:
    baseline = {"GPU-0": 0, "GPU-1": 0}
    assert worst_above(sample(40, None), baseline) is None
    assert worst_above(sample(40), baseline) is None
    assert worst_above(sample(40, 2), {"GPU-0": 0, "GPU-1": None}) is None
    assert worst_above(sample(40), {}) is None


def test_the_reading_before_launch_is_kept_by_device() -> None:
    assert device_bytes(sample(5, None), ["GPU-0", "GPU-1", "GPU-9"]) == {"GPU-0": 5, "GPU-1": None, "GPU-9": None}


def test_trees_are_summed_and_an_unknown_one_makes_the_sum_unknown() -> None:
    assert tree_bytes(sample(rss={1: 5, 2: 6, 3: 100}), [1, 2]) == 11
    assert tree_bytes(sample(rss={1: 5, 2: None}), [1, 2]) is None
    assert tree_bytes(sample(rss={1: 5}), [1, 2]) is None
    assert tree_bytes(sample(), []) is None


def test_a_peak_between_two_rollups_is_kept() -> None:
    window = RollupWindow(baseline={"GPU-0": 10}, roots=(1,))
    for used, size in ((20, 5), (90, 50), (30, 6)):
        window.add(sample(used, rss={1: size}))
    parts = window.close()
    assert (parts.gpu_bytes, parts.host_bytes) == (Band(10, 80, 20), Band(5, 50, 6))
    window.add(sample(40, rss={1: None}))
    parts = window.close()
    assert (parts.gpu_bytes, parts.host_bytes) == (Band(30, 30, 30), None)
    assert (window.peak_gpu_bytes, window.peak_host_bytes) == (80, 50)
    assert (window.last_gpu_bytes, window.last_host_bytes) == (30, 6)


def test_an_interval_without_a_sample_is_unknown_not_zero() -> None:
    window = RollupWindow(baseline={"GPU-0": 0}, roots=(1,))
    assert window.close().gpu_bytes is None
    window.add(sample(None, rss={1: None}))
    assert window.close().host_bytes is None
    assert (window.peak_gpu_bytes, window.peak_host_bytes) == (None, None)
    assert NodeWindow().close() is None


@given(st.lists(st.lists(KNOWN, max_size=5), max_size=8))
def test_no_peak_is_lost_however_the_intervals_fall(intervals: list[list[int | None]]) -> None:
    window = RollupWindow(baseline={"GPU-0": 0}, roots=(1,))
    highest: list[float] = []
    for interval in intervals:
        for value in interval:
            window.add(sample(value, rss={1: value}))
        parts = window.close()
        told = [value for value in interval if value is not None]
        assert parts.gpu_bytes == (Band(min(told), max(told), told[-1]) if told else None)
        assert parts.host_bytes == parts.gpu_bytes
        highest += told
    assert window.peak_gpu_bytes == window.peak_host_bytes == (max(highest) if highest else None)


def test_the_node_keeps_bands_of_every_device() -> None:
    window = NodeWindow()
    window.add(sample(10, 90))
    window.add(sample(30, None, cpu=50.0))
    window.add(sample(20, cpu=100.0))
    parts = window.close()
    assert parts is not None
    assert [device.used_bytes for device in parts.devices] == [Band(10, 30, 20), Band(90, 90, 90)]
    assert [device.utilisation for device in parts.devices] == [Band(10, 30, 20), Band(90, 90, 90)]
    assert (parts.cpu_percent, parts.host_used_bytes, parts.host_total_bytes) == (75.0, 7, 9)
    window.add(sample(1))
    again = window.close()
    assert again is not None
    assert [device.used_bytes for device in again.devices] == [Band(1, 1, 1)]
    assert again.cpu_percent is None
