"""When a repeat is not believed because its own load workers were too slow, and what is said then."""

from typing import Any

import pytest

from deploytui.record.columns import RequestColumns
from deploytui.record.gaps import ListedGaps
from deploytui.record.measured import ToolError
from deploytui.run.client_bound import tool_error
from tests.record.build import request
from tests.run.repeats import MS, a_report


def judged(*reports: dict[str, Any], gap_ms: float | None = 20, ttft_ms: float = 100, requests: int = 100) -> ToolError:
    columns = RequestColumns()
    columns.add([request(number, ttft_ms=ttft_ms, reads=10, multi_chunk_reads=5) for number in range(requests)])
    gaps = ListedGaps([] if gap_ms is None else [int(gap_ms * MS)])
    return tool_error([a_report(**changes) for changes in reports], columns, gaps)


@pytest.mark.parametrize(
    ("clock", "gap_ms", "lag_ms", "bound"),
    [
        ("user", 20, 0.9, False),
        ("user", 20, 1.1, True),
        ("mixed", 20, 1.1, True),
        ("kernel", 20, 40.0, False),
        ("user", 20, None, False),
        ("user", 200, 9.0, False),
        ("user", 200, 11.0, True),
        ("user", 2, 0.9, False),
    ],
)
def test_lag_may_reach_a_twentieth_of_the_gap_where_the_worker_stamps(
    clock: str, gap_ms: float, lag_ms: float | None, bound: bool
) -> None:
    assert judged({"clock": clock, "lag_ms_p99": lag_ms}, gap_ms=gap_ms).client_bound is bound


def test_it_says_what_shows_it_and_what_to_do() -> None:
    found = judged({"lag_ms_p99": 12.0})
    assert found.client_bound_why == (
        "lag p99 12 ms is 60% of the median gap of 20 ms: give load_workers = 2, or run from a quieter machine"
    )
    assert judged({}).client_bound_why == ""


def test_without_gaps_the_wait_for_the_first_token_is_what_lag_moves() -> None:
    assert not judged({"lag_ms_p99": 4.0}, gap_ms=None, ttft_ms=100).client_bound
    assert "of the median TTFT of 100 ms" in judged({"lag_ms_p99": 8.0}, gap_ms=None, ttft_ms=100).client_bound_why


@pytest.mark.parametrize("clock", ["user", "mixed", "kernel"])
def test_a_worker_without_cpu_to_spare_is_bound_whatever_the_clock(clock: str) -> None:
    assert judged({"clock": clock, "cpu_share": 0.95}).client_bound
    assert not judged({"clock": clock, "cpu_share": None}).client_bound


@pytest.mark.parametrize(("extra", "bound"), [(0, False), (10, False), (11, True)])
def test_chunks_that_met_because_they_were_read_late_bind(extra: int, bound: bool) -> None:
    found = judged({"clock": "kernel", "reads": 1000, "multi_chunk_reads": 500, "extra_multi_chunk_reads": extra})
    assert found.client_bound is bound
    assert found.extra_multi_chunk_read_share == extra / 1000
    assert found.multi_chunk_read_share == 0.5


@pytest.mark.parametrize(
    ("late", "worst_ms", "bound"),
    [(1, 500.0, False), (3, 500.0, False), (4, 500.0, True), (50, 4.0, False), (50, None, True)],
)
def test_many_requests_sent_noticeably_late_bind(late: int, worst_ms: float | None, bound: bool) -> None:
    found = judged({"clock": "kernel", "late_sends": late, "late_send_ms_max": worst_ms})
    assert found.client_bound is bound
    assert ("sent late" in found.client_bound_why) is bound


def test_the_worst_of_the_workers_counts_and_each_shows_its_cpu() -> None:
    found = judged(
        {
            "clock": "kernel",
            "lag_ms_p50": 0.1,
            "lag_ms_p99": 0.2,
            "lag_ms_max": 3.0,
            "cpu_share": 0.95,
            "late_sends": 1,
        },
        {"clock": "user", "lag_ms_p50": 0.2, "lag_ms_p99": 0.1, "lag_ms_max": 1.0, "cpu_share": None, "late_sends": 2},
    )
    assert (found.workers, found.clock, found.path) == (2, "mixed", "tcp")
    assert (found.lag_ms_p50, found.lag_ms_p99, found.lag_ms_max) == (0.2, 0.2, 3.0)
    assert (found.worker_cpu_share, found.worker_cpu_shares, found.late_sends) == (0.95, (0.95, None), 3)
    assert "load_workers = 3" in found.client_bound_why


def test_what_a_report_does_not_tell_is_missing() -> None:
    found = judged({"lag_ms_p99": None, "lag_ms_max": None, "cpu_share": None})
    assert (found.extra_multi_chunk_read_share, found.lag_ms_p50, found.late_send_ms_max) == (None, None, None)
    assert (found.lag_ms_p99, found.worker_cpu_share) == (None, None)
