"""When a repeat's stamps are not believed because its own load worker was too slow."""

import msgspec
import pytest

from deploytui.load.orders import Report
from deploytui.record.trace import RequestRecord
from deploytui.run.samples import _is_client_bound

MS = 1_000_000


def a_report(**changes: object) -> Report:
    plain = {
        "kind": "report",
        "at_ns": 0,
        "requests": 1,
        "ok": 1,
        "started_ns": 0,
        "ended_ns": 1,
        "clock": "user",
        "lag_ms_p99": 0.5,
        "lag_ms_max": 1.0,
        "cpu_share": 0.2,
    }
    return msgspec.convert(plain | changes, Report)


def a_record(ttft_ms: int = 100, **changes: object) -> RequestRecord:
    plain = {"id": 0, "user": 0, "sent_ns": 0, "end_ns": 200 * MS, "first_token_ns": ttft_ms * MS, "ok": True}
    return msgspec.convert(plain | changes, RequestRecord)


@pytest.mark.parametrize(
    ("clock", "lag_ms", "bound"),
    [
        ("user", 4.9, False),
        ("user", 40.0, True),
        ("mixed", 40.0, True),
        ("kernel", 40.0, False),
        ("kernel", None, False),
    ],
)
def test_a_late_worker_moves_no_stamp_of_the_kernel(clock: str, lag_ms: float | None, bound: bool) -> None:
    assert _is_client_bound(a_report(clock=clock, lag_ms_p99=lag_ms), [a_record()], [0.01]) is bound


@pytest.mark.parametrize("clock", ["user", "mixed", "kernel"])
def test_a_worker_without_cpu_to_spare_is_bound_whatever_the_clock(clock: str) -> None:
    assert _is_client_bound(a_report(clock=clock, cpu_share=0.95), [a_record()], []) is True
    assert _is_client_bound(a_report(clock=clock, cpu_share=None), [a_record()], []) is False


def test_lag_is_measured_against_the_wait_for_the_first_token() -> None:
    assert _is_client_bound(a_report(lag_ms_p99=8.0), [a_record(ttft_ms=100)], []) is True
    assert _is_client_bound(a_report(lag_ms_p99=8.0), [a_record(ttft_ms=1000)], []) is False


@pytest.mark.parametrize(
    ("lag_ms", "merged_reads", "bound"), [(240.0, 28, True), (240.0, 0, False), (15.0, 28, False), (None, 28, False)]
)
def test_a_worker_so_late_that_chunks_merge_is_bound_with_the_kernels_clock(
    lag_ms: float | None, merged_reads: int, bound: bool
) -> None:
    record = a_record(reads=100, multi_chunk_reads=merged_reads)
    assert _is_client_bound(a_report(clock="kernel", lag_ms_p99=lag_ms), [record], [0.02]) is bound
