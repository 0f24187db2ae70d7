"""The distance between two sides' stamps: arithmetic that can be worked out by hand, and laws."""

import io
from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.errors import DeployError
from deploytui.host import paced_truth
from deploytui.host.paced_streams import Stream
from deploytui.load.stamps import RequestStamps
from deploytui.run.selftest_truth import Joined, Sent, join, quantile, read_truth

MS = 1_000_000
ITL = 20 * MS
LAGS = st.lists(st.integers(0, 100 * MS), min_size=1, max_size=20)


def sent(id_: int, stamps: Sequence[int], *, seen: int = 0, finished: bool = True, blocked: bool = False) -> Sent:
    return Sent(id_, finished, blocked, seen, True, seen, array("q", stamps))


def stamped(id_: int, stamps: Sequence[int], *, at: int = 0) -> RequestStamps:
    return RequestStamps(id_, "kernel", at, array("q", stamps))


def paced(tokens: int, *, first: int = 200 * MS, itl: int = ITL) -> list[int]:
    return [first + k * itl for k in range(tokens)]


def both(lags: Sequence[int], *, asked_late: int = 0) -> Joined:
    """A stream of which the client gets each token so much later, and the server the request."""
    server = paced(len(lags))
    client = [at + lag for at, lag in zip(server, lags, strict=True)]
    return join([sent(1, server, seen=asked_late)], [stamped(1, client)], ITL)


def test_a_client_that_stamps_what_was_sent_has_no_error() -> None:
    joined = both([0, 0, 0])
    assert (joined.ttft_error_us, joined.itl_error_us) == ([0], [0, 0])
    assert (joined.requests, joined.tokens, joined.left_out, joined.pace) == (1, 3, 0, 1.0)


def test_a_late_read_is_an_error_of_two_gaps() -> None:
    assert both([0, 3000, 0, 0]).itl_error_us == [0, 3, 3]


def test_ttft_counts_what_the_client_adds_at_either_end() -> None:
    assert both([7000], asked_late=5000).ttft_error_us == [12]


@given(LAGS, st.integers(0, 10**9))
def test_a_constant_lag_is_no_error_of_a_gap(lags: list[int], more: int) -> None:
    assert both(lags).itl_error_us == both([lag + more for lag in lags]).itl_error_us


@given(LAGS, st.integers(0, 10**6))
def test_errors_are_the_differences_of_what_both_sides_would_print(lags: list[int], asked_late: int) -> None:
    server = paced(len(lags))
    client = [at + lag for at, lag in zip(server, lags, strict=True)]
    joined = join([sent(1, server, seen=asked_late)], [stamped(1, client)], ITL)
    gaps = [abs((client[k] - client[k - 1]) - (server[k] - server[k - 1])) / 1e3 for k in range(1, len(lags))]
    assert joined.itl_error_us == sorted(gaps)
    assert joined.ttft_error_us == [abs(client[0] - (server[0] - asked_late)) / 1e3]


@given(st.permutations(range(6)))
def test_the_order_in_which_requests_end_does_not_matter(order: list[int]) -> None:
    truth = [sent(k, paced(3), seen=k) for k in range(6)]
    mine = [stamped(k, [at + k for at in paced(3)], at=k) for k in range(6)]
    assert join(truth, [mine[k] for k in order], ITL) == join([truth[k] for k in order], mine, ITL)


@pytest.mark.parametrize(
    ("server", "client"),
    [
        (sent(1, paced(3), finished=False), stamped(1, paced(3))),
        (sent(1, paced(3), blocked=True), stamped(1, paced(3))),
        (sent(1, paced(3)), stamped(1, paced(2))),
        (sent(1, []), stamped(1, [])),
    ],
    ids=["cut", "blocked", "a token lost", "no token"],
)
def test_what_can_not_be_compared_is_left_out_and_counted(server: Sent, client: RequestStamps) -> None:
    good = (sent(2, paced(3)), stamped(2, paced(3)))
    joined = join([server, good[0]], [client, good[1]], ITL)
    assert (joined.requests, joined.tokens, joined.left_out) == (1, 3, 1)


def test_what_only_one_side_knows_is_left_out_and_counted() -> None:
    joined = join([sent(1, paced(3)), sent(2, paced(3))], [stamped(2, paced(3)), stamped(3, paced(3))], ITL)
    assert (joined.requests, joined.left_out) == (1, 2)


def test_of_a_request_that_was_asked_anew_the_last_counts() -> None:
    joined = join([sent(1, paced(1), finished=False), sent(1, paced(3))], [stamped(1, paced(3))], ITL)
    assert (joined.requests, joined.left_out) == (1, 0)


def test_the_servers_own_pace_and_unevenness_are_told() -> None:
    slow = paced(3, itl=25 * MS)
    joined = join([sent(1, slow)], [stamped(1, slow)], ITL)
    assert (joined.pace, joined.server_off_us, joined.itl_error_us) == (0.8, [5000, 5000], [0, 0])


def test_nothing_has_no_pace() -> None:
    joined = join([], [], ITL)
    assert (joined.requests, joined.pace, joined.itl_error_us) == (0, None, [])


def test_a_percentile_needs_its_samples() -> None:
    values = [float(k) for k in range(101)]
    assert (quantile(values, 99), quantile(values[:99], 99), quantile([], 50)) == (99, None, None)


def test_the_file_is_read_as_the_server_writes_it() -> None:
    stream = Stream.__new__(Stream)
    stream.id, stream.k, stream.flags, stream.seen_ns, stream.first_due_ns = 7, 2, 5, 11, 12
    stream.stamps = array("q", [13, 14, 0])
    content = paced_truth.MAGIC + ITL.to_bytes(8, "little") + paced_truth.entry(stream)
    itl_ns, entries = read_truth(io.BytesIO(content))
    assert (itl_ns, list(entries)) == (ITL, [Sent(7, True, False, 11, True, 12, array("q", [13, 14]))])
    assert list(read_truth(io.BytesIO(content[:-1]))[1]) == []


@pytest.mark.parametrize("content", [b"", b"DTTRUTH1", b"DTSTAMP2" + bytes(8)])
def test_another_file_is_refused(content: bytes) -> None:
    with pytest.raises(DeployError, match="truth file"):
        read_truth(io.BytesIO(content))
