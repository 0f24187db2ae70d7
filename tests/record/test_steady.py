"""The steady window: when the load was full, and what it made meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.profile.schema import Gates
from deploytui.record.measured import Metrics, ToolError
from deploytui.record.metrics import measure
from deploytui.record.rates import Window, full_window
from deploytui.record.trace import RequestRecord
from tests.record.build import MS, failure, request


def numbers(records: list[RequestRecord], *, gates: Gates | None = None, target: int | None = 1) -> Metrics:
    return measure(
        records, gaps_s=(), asked_tokens=11, target_concurrency=target, gates=gates, tool=ToolError(clock="kernel")
    )


def test_the_steady_window_leaves_out_the_tail_with_idle_users() -> None:
    """Two users; one reply ends at 200 ms, the other at 1100 ms: the load is full for 200 ms only."""
    slow = request(1, ttft_ms=100, tpot_ms=100)
    found = numbers([request(0, ttft_ms=100, tpot_ms=10), slow], target=2)
    assert found.steady_output_tok_s == pytest.approx((11 + 2) / 0.2)
    assert found.output_tok_s == pytest.approx(22 / 1.1)


def test_a_load_that_never_fills_has_no_steady_rate() -> None:
    assert numbers([request(0)], target=2).steady_output_tok_s is None


def test_an_open_loop_has_no_steady_rate() -> None:
    assert numbers([request(0)], target=None).steady_output_tok_s is None


def window_of(records: list[RequestRecord], target: int) -> Window:
    return full_window([record.sent_ns for record in records], [record.end_ns for record in records], target)


def test_nine_of_ten_users_are_a_full_load() -> None:
    records = [request(i) for i in range(9)]
    assert window_of(records, 10).length_ns == 200 * MS
    assert window_of(records, 11).length_ns == 0


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 500), st.integers(0, 40)), max_size=20), st.integers(1, 5)
)
def test_the_window_never_holds_more_tokens_than_were_made(rows: list[tuple[int, int, int]], target: int) -> None:
    records = [
        request(i, sent_ms=start, ttft_ms=wait, tokens=tokens)
        for i, (start, wait, tokens) in enumerate(rows)
        if tokens > 0
    ]
    window = window_of(records, target)
    within = window.tokens((r.first_token_ns or 0, r.last_token_ns or 0, r.output_tokens or 0) for r in records)
    assert -1e-6 <= within <= sum(record.output_tokens or 0 for record in records) + 1e-6
    span = max((r.end_ns for r in records), default=0) - min((r.sent_ns for r in records), default=0)
    assert 0 <= window.length_ns <= span


def test_the_steady_window_ends_where_a_request_begins_whose_tokens_are_lost() -> None:
    """Two answers of 200 ms, one after the other, and a third that the load's end cuts off after 150 ms."""
    lost = failure(2, sent_ms=400, end_ms=550, kind="cut_off")
    found = numbers([request(0), request(1, sent_ms=200), lost])
    assert found.steady_output_tok_s == pytest.approx(22 / 0.4)
