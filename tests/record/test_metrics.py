"""From request records to numbers."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.profile.schema import Gates, Limits
from deploytui.record.measured import Metrics, ToolError
from deploytui.record.metrics import distribution, measure, measure_many, sample_of, share
from deploytui.record.trace import RequestRecord
from tests.record.build import failure, request


def numbers(records: list[RequestRecord], *, gates: Gates | None = None, target: int | None = 1) -> Metrics:
    return measure(
        records, gaps_s=(), asked_tokens=11, target_concurrency=target, gates=gates, tool=ToolError(clock="kernel")
    )


def test_a_distribution_of_nothing_has_no_numbers() -> None:
    found = distribution([])
    assert found.n == 0
    assert {found.mean, found.std, found.min, found.p50, found.p95, found.p99, found.max} == {None}


def test_one_value_has_no_standard_deviation() -> None:
    found = distribution([2.0])
    assert (found.mean, found.std, found.p50) == (2.0, None, 2.0)


@pytest.mark.parametrize(
    ("n", "p95", "p99"), [(19, False, False), (20, True, False), (99, True, False), (100, True, True)]
)
def test_a_percentile_without_its_samples_is_missing(n: int, p95: bool, p99: bool) -> None:
    found = distribution(range(n))
    assert (found.p95 is not None, found.p99 is not None) == (p95, p99)
    assert found.p90 is not None


@given(st.lists(st.floats(0, 1e6), min_size=100, max_size=300))
def test_percentiles_are_those_of_the_inclusive_method(values: list[float]) -> None:
    found = distribution(values)
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert found.p50 == pytest.approx(cuts[49])
    assert found.p90 == pytest.approx(cuts[89])
    assert found.p95 == pytest.approx(cuts[94])
    assert found.p99 == pytest.approx(cuts[98])
    assert found.std == pytest.approx(statistics.stdev(values), abs=1e-6)


def test_the_order_of_the_values_does_not_matter() -> None:
    assert distribution([3.0, 1.0, 2.0]) == distribution([1.0, 2.0, 3.0])


def test_a_share_carries_its_interval() -> None:
    found = share(8, 10)
    assert (found.value, found.n) == (0.8, 10)
    assert (found.low, found.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert share(0, 0).value is None


def test_latencies_are_those_of_successful_requests_only() -> None:
    found = numbers([request(0, ttft_ms=100), request(1, ttft_ms=300), failure(2), failure(3)])
    assert (found.requests, found.ok) == (4, 2)
    assert (found.ttft.n, found.ttft.mean, found.ttft.min) == pytest.approx((2, 0.2, 0.1))
    assert found.success_rate.value == 0.5
    assert found.errors == {"http_429": 2}


def test_empty_streams_leave_no_zeros_in_the_median() -> None:
    good = [request(i, ttft_ms=200) for i in range(4)]
    found = numbers([*good, *(failure(10 + i, kind="empty") for i in range(6))])
    assert (found.ttft.n, found.ttft.p50) == pytest.approx((4, 0.2))
    assert found.success_rate.value == pytest.approx(0.4)


def test_a_reply_of_one_token_has_no_tpot_and_does_not_lower_the_mean() -> None:
    found = numbers([request(0, tokens=1), request(1, tokens=10, tpot_ms=20)])
    assert (found.tpot.n, found.tpot.mean) == pytest.approx((1, 0.02))
    assert found.e2e.n == 2


def test_throughput_is_tokens_over_first_send_to_last_completion() -> None:
    found = numbers([request(0, sent_ms=0), request(1, sent_ms=800)])
    assert found.duration_s == pytest.approx(1.0)
    assert found.output_tok_s == pytest.approx(22.0)
    assert found.request_s == pytest.approx(2.0)


def test_failed_requests_add_time_but_no_tokens() -> None:
    found = numbers([request(0), failure(1, sent_ms=0, end_ms=2000)])
    assert found.output_tok_s == pytest.approx(11 / 2)


def test_an_unknown_token_count_makes_throughput_unknown() -> None:
    found = numbers([request(0), request(1, tokens=None)])
    assert found.output_tok_s is None
    assert found.steady_output_tok_s is None
    assert found.request_s is not None
    assert found.output_tokens.n == 1


def test_nothing_at_all_gives_no_rate() -> None:
    found = numbers([])
    assert (found.duration_s, found.output_tok_s, found.request_s, found.success_rate.value) == (None,) * 4


def test_only_failures_give_no_throughput_of_zero_tokens() -> None:
    found = numbers([failure(0), failure(1)])
    assert found.output_tok_s is None
    assert found.ttft.n == 0


def test_rates_over_repeats_leave_out_the_pause_between_them() -> None:
    repeats = [sample_of([request(0, sent_ms=start)]) for start in (0, 60_000)]
    found = measure_many(repeats, asked_tokens=11, target_concurrency=1, gates=None)
    assert found.duration_s == pytest.approx(0.4)
    assert found.output_tok_s == pytest.approx(22 / 0.4)
    assert found.steady_output_tok_s == pytest.approx(22 / 0.4)
    assert found.ttft.n == 2


def test_one_group_measures_as_a_repeat_does() -> None:
    records = [request(i, sent_ms=i * 10) for i in range(30)]
    tool = ToolError(clock="kernel", lag_ms_p99=1.0)
    one = measure(records, gaps_s=[0.01, 0.1], asked_tokens=11, target_concurrency=4, gates=None, tool=tool)
    group = sample_of(records, [0.01, 0.1], tool)
    assert measure_many([group], asked_tokens=11, target_concurrency=4, gates=None) == one


def test_goodput_counts_requests_that_meet_every_gate() -> None:
    gates = Gates(max_ttft_ms=Limits(p95=150), max_e2e_ms=Limits(p95=250))
    records = [request(0), request(1, ttft_ms=160, tpot_ms=1), request(2, tpot_ms=20), failure(3)]
    found = numbers(records, gates=gates)
    assert found.goodput == pytest.approx(1 / 0.3)


def test_goodput_uses_the_smallest_limit_of_a_gate() -> None:
    found = numbers([request(0, ttft_ms=100)], gates=Gates(max_ttft_ms=Limits(p50=90, p95=500)))
    assert found.goodput == 0.0


def test_goodput_is_absent_without_a_latency_gate() -> None:
    assert numbers([request(0)], gates=Gates(min_quality=0.8)).goodput is None


def test_goodput_is_unknown_when_a_gate_needs_tokens_nobody_told() -> None:
    assert numbers([request(0, tokens=None)], gates=Gates(max_tpot_ms=Limits(p95=50))).goodput is None


def test_a_reply_of_one_token_can_not_miss_a_tpot_gate() -> None:
    found = numbers([request(0, tokens=1)], gates=Gates(max_tpot_ms=Limits(p95=1)))
    assert found.goodput == pytest.approx(10)


def test_short_replies_are_counted_never_assumed_full() -> None:
    records = [request(0, tokens=11), request(1, tokens=4, finish_reason="stop"), failure(2)]
    found = numbers(records)
    assert found.short_outputs == 1
    assert found.output_tokens.min == 4


def test_a_prompt_with_its_own_length_is_not_short() -> None:
    assert numbers([request(0, tokens=4, asked_tokens=4)]).short_outputs == 0
    assert numbers([request(0, tokens=11, asked_tokens=20)]).short_outputs == 1


def test_a_stop_without_usage_counts_as_short() -> None:
    assert numbers([request(0, tokens=None, finish_reason="stop")]).short_outputs == 1


def test_cached_tokens_are_missing_when_the_engine_does_not_tell() -> None:
    assert numbers([request(0)]).cached_tokens is None
    assert numbers([request(0, cached_tokens=0), request(1, cached_tokens=32)]).cached_tokens == 32


def test_bursts_show_in_the_share_of_tiny_gaps() -> None:
    found = measure(
        [request(0)],
        gaps_s=[0.0, 0.0001, 0.05, 0.06],
        asked_tokens=11,
        target_concurrency=1,
        gates=None,
        tool=ToolError(),
    )
    assert found.burst_share == 0.5
    assert (found.icl.n, found.icl.max) == pytest.approx((4, 0.06))
    assert numbers([request(0)]).burst_share is None


def test_tokens_per_chunk_comes_from_usage_not_from_chunks() -> None:
    assert numbers([request(0, tokens=20, chunks=5)]).tokens_per_chunk == 4.0
    assert numbers([request(0, tokens=None)]).tokens_per_chunk is None


def test_requests_that_the_loads_end_cut_off_blame_nobody() -> None:
    found = numbers([request(0), failure(1), failure(2, kind="cut_off"), failure(3, kind="cut_off")])
    assert (found.requests, found.ok, found.errors) == (4, 1, {"http_429": 1, "cut_off": 2})
    assert (found.success_rate.value, found.success_rate.n) == (0.5, 2)


def test_being_cut_off_is_no_completion() -> None:
    found = numbers([request(0), failure(1, sent_ms=0, end_ms=2000, kind="cut_off")])
    assert (found.duration_s, found.output_tok_s) == pytest.approx((0.2, 55))
    nothing = numbers([failure(0, kind="cut_off")])
    assert (nothing.duration_s, nothing.request_s, nothing.success_rate.value) == (None, None, None)


def test_an_open_loop_counts_from_the_time_a_request_was_due() -> None:
    """Due at 0, held back by 50 ms before it was sent."""
    found = numbers([request(0, sent_ms=50, scheduled_ns=0), request(1, sent_ms=10)])
    assert found.ttft_scheduled is not None
    assert found.e2e_scheduled is not None
    assert (found.ttft_scheduled.n, found.ttft_scheduled.p50) == pytest.approx((1, 0.15))
    assert found.e2e_scheduled.p50 == pytest.approx(0.25)
    assert found.ttft.max == pytest.approx(0.1)


def test_a_closed_loop_has_no_schedule_to_count_from() -> None:
    found = numbers([request(0)])
    assert (found.ttft_scheduled, found.e2e_scheduled) == (None, None)


def test_flags_and_unknown_errors_are_counted() -> None:
    found = numbers([request(0, flags=("no_done",)), failure(1, kind="timeout"), request(2, ok=False)])
    assert found.flags == {"no_done": 1}
    assert found.errors == {"timeout": 1, "unknown": 1}


def test_the_worst_tool_error_of_the_repeats_is_kept() -> None:
    tools = [ToolError(clock="kernel", lag_ms_max=1.0), ToolError(clock="user", lag_ms_max=9.0, client_bound=True)]
    found = measure_many(
        [sample_of([request(0)], tool=tool) for tool in tools], asked_tokens=11, target_concurrency=1, gates=None
    ).tool
    assert (found.clock, found.lag_ms_max, found.client_bound, found.lag_ms_p99) == ("mixed", 9.0, True, None)


def test_each_worker_keeps_its_worst_cpu_and_events_add_up() -> None:
    tools = [
        ToolError(worker_cpu_shares=(0.2, None), late_sends=3, late_send_ms_max=5.0),
        ToolError(worker_cpu_shares=(0.1, 0.4), late_sends=1, client_bound=True, client_bound_why="lag"),
    ]
    found = measure_many(
        [sample_of([request(0)], tool=tool) for tool in tools], asked_tokens=11, target_concurrency=1, gates=None
    ).tool
    assert (found.worker_cpu_shares, found.late_sends, found.late_send_ms_max) == ((0.2, 0.4), 4, 5.0)
    assert (found.client_bound, found.client_bound_why) == (True, "lag")


def test_percentiles_come_with_their_interval() -> None:
    found = numbers([request(i, ttft_ms=100 + i) for i in range(100)])
    low, high = found.bounds["ttft.p50"]
    assert found.ttft.p50 is not None
    assert low < found.ttft.p50 < high
    assert (low, high) == pytest.approx((0.139, 0.160))
    assert "ttft.p99" in found.bounds
    assert "ttft.p95" not in numbers([request(i) for i in range(10)]).bounds


def test_no_number_is_nan_or_infinite() -> None:
    same_instant = RequestRecord(id=0, sent_ns=5, end_ns=5, ok=True, first_token_ns=5, last_token_ns=5, output_tokens=3)
    found = numbers([same_instant])
    assert found.output_tok_s is None
    assert found.tpot.mean == 0.0
    assert all(math.isfinite(v) for v in (found.e2e.mean or 0.0, found.ttft.mean or 0.0))
