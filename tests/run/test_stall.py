"""A start that stands still is told from one that only takes long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.run.stall import Activity, Stall
from deploytui.run.watching import phase_of

MIB = 1 << 20
QUIET = Activity(log_bytes=100, cpu_s=10.0, resident_bytes=500 * MIB, gpu_percent=0.0)


def _watched(looks: list[Activity], limit_s: float = 300.0) -> int | None:
    """After how many seconds it is called standing still, looked at once a second; None when it is not."""
    stall = Stall(limit_s)
    return next((second for second, seen in enumerate(looks) if stall.stands_still(float(second), seen)), None)


def test_an_engine_that_does_nothing_is_called_so_after_the_limit() -> None:
    assert _watched([QUIET] * 400) == 300


@pytest.mark.parametrize(
    "moved",
    [
        lambda second: Activity(log_bytes=100 + second // 10, cpu_s=10.0, resident_bytes=0, gpu_percent=0.0),
        lambda second: Activity(log_bytes=100, cpu_s=10.0 + second, resident_bytes=0, gpu_percent=0.0),
        lambda second: Activity(log_bytes=100, cpu_s=10.0, resident_bytes=second * 20 * MIB, gpu_percent=0.0),
        lambda second: Activity(log_bytes=100, cpu_s=10.0, resident_bytes=0, gpu_percent=float(second % 60 == 0) * 90),
        lambda second: Activity(log_bytes=100, cpu_s=10.0 - second, resident_bytes=0),
    ],
    ids=["logs", "computes", "reads", "gpu", "loses a process"],
)
def test_one_that_works_for_twenty_minutes_is_left_alone(moved: "object") -> None:
    assert _watched([moved(second) for second in range(1200)]) is None  # type: ignore[operator]


def test_waking_up_now_and_then_is_no_work() -> None:
    looks = [Activity(log_bytes=100, cpu_s=10.0 + second * 0.01, resident_bytes=0) for second in range(400)]
    assert _watched(looks) == 300


def test_where_nobody_tells_nothing_is_claimed() -> None:
    assert _watched([Activity(log_bytes=100)] * 1000) is None


@given(st.integers(0, 500))
def test_the_limit_runs_from_the_last_sign_of_life(last: int) -> None:
    looks = [Activity(log_bytes=min(second, last), cpu_s=1.0, resident_bytes=0) for second in range(900)]
    assert _watched(looks) == last + 300


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("Downloading shards:  25%|##5       | 1/4", "download"),
        ("Fetching 12 files:   8%|8", "download"),
        ("Loading safetensors checkpoint shards: 100% Completed | 1/1", "load"),
        ("(EngineCore pid=3) INFO Starting to load model /models/m...", "load"),
        ("load_tensors: loading model tensors, this can take a while... (mmap = true)", "load"),
        ("INFO [backends.py:559] Dynamo bytecode transform time: 3.2 s", "compile"),
        ("torch.compile takes 21.1 s in total", "compile"),
        ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  10%", "capture"),
        ("Capture cuda graph begin. This can take up to several minutes.", "capture"),
        ("Graph capturing finished in 20 secs, took 0.50 GiB", "capture"),
        ("GPU KV cache size: 462,064 tokens", "kv cache"),
        ("Warming up model", "warm-up"),
        ("INFO: Application startup complete.", None),
        ("", None),
    ],
)
def test_the_phase_of_a_start_is_read_from_the_log(line: str, phase: str | None) -> None:
    assert phase_of(line) == phase
