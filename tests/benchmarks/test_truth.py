"""The benchmark's own arithmetic: what counts as an error, and which request belongs to which."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import Figures
from benchmarks.server import Served
from benchmarks.streams import STREAMS, most
from benchmarks.table import markdown
from benchmarks.truth import Heard, errors, joined, quantile

ITL_US = 20_000
STEP_NS = ITL_US * 1000


def served(request: int, arrived_ns: int, tokens: int = 8) -> Served:
    """A request that was served exactly on time."""
    due = arrived_ns + 200_000_000
    sent = array("q", range(due, due + tokens * STEP_NS, STEP_NS))
    return Served(request, tokens, tokens, arrived_ns, due, sent[-1], sent)


@given(delay_ns=st.integers(0, 10**9), at_ns=st.integers(0, 2**50))
def test_a_constant_delay_is_an_error_of_the_first_token_only(delay_ns: int, at_ns: int) -> None:
    true = served(0, at_ns)
    said = Heard(0, at_ns, array("q", (stamp + delay_ns for stamp in true.sent_ns)))
    found = errors([(said, true)], ITL_US)
    assert found.ttft_us == [delay_ns / 1000]
    assert set(found.itl_us) == {0.0}
    assert set(found.late_us) == {0.0}


def test_two_tokens_under_one_stamp_are_a_gap_too_short_and_one_too_long() -> None:
    true = served(0, 1000)
    came = array("q", true.sent_ns)
    came[3] = came[4]
    found = errors([(Heard(0, 1000, came), true)], ITL_US)
    assert found.itl_us[-2:] == [ITL_US, ITL_US]


def test_an_id_used_again_is_told_apart_by_when_it_was_sent() -> None:
    first, second = served(7, 1_000), served(7, 5_000_000)
    pairs = joined([Heard(7, 4_999_000, array("q")), Heard(7, 900, array("q"))], [first, second])
    assert [true for _, true in pairs] == [second, first]


def test_a_request_the_server_never_saw_has_no_truth() -> None:
    assert joined([Heard(7, 2_000, array("q"))], [served(7, 1_000), served(8, 3_000)]) == []


def test_tokens_that_never_came_are_not_delivered() -> None:
    pairs = []
    for request in range(4):
        true = served(request, request * 1_000_000, tokens=100)
        came = true.sent_ns if request else true.sent_ns[:50]
        pairs.append((Heard(request, true.arrived_ns, came), true))
    delivered = errors(pairs, ITL_US).delivered
    assert delivered is not None
    assert 0.85 < delivered < 0.9


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_quantile_lies_within_its_sample(values: list[float], q: float) -> None:
    assert min(values) <= quantile(sorted(values), q) <= max(values)


def test_a_missed_budget_is_marked() -> None:
    figures = Figures()
    for value in (40.0, 60.0, 70.0):
        figures.add("screen itl p99 us", value)
    row = next(line for line in markdown(figures).splitlines() if line.startswith("| 1 |"))
    assert "60.0 µs" in row
    assert "**no**" in row
    assert "40.0 … 70.0 (3)" in row


def test_more_streams_than_a_bad_step_do_not_count() -> None:
    figures = Figures()
    for streams, p99 in zip(STREAMS, (5.0, 10.0, 2000.0, 900.0), strict=False):
        figures.add(f"{streams} streams itl p99 us", p99)
    assert most(figures) == STREAMS[1]
