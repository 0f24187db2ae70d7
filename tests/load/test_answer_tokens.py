"""What counts as a token, when it came, and how many there were."""

import pytest

from deploytui.definitions import percentile, tpot, ttft
from deploytui.record.trace import RequestRecord
from tests.load.chats import MS, content, timed, usage
from tests.load.replay import DONE, HEAD, STOP, delta, event, fold, record_of


@pytest.mark.parametrize("opening", [{"content": ""}, {"content": None}, {}])
def test_a_role_only_chunk_is_no_token(opening: dict[str, object]) -> None:
    record = timed(
        (5, event(data={"choices": [{"delta": {"role": "assistant", **opening}}]})),
        (210, content("Hi")),
        (230, content(" there")),
        (231, event(data=STOP) + DONE),
    )
    assert record.ok
    assert record.first_chunk_ns == 5 * MS
    assert record.first_token_ns == 210 * MS
    assert record.last_token_ns == 230 * MS
    assert record.chunks == 2


@pytest.mark.parametrize("names", [("reasoning",), ("reasoning_content",), ("reasoning", "reasoning_content")])
def test_reasoning_is_generated_text_under_either_name_and_counts_once(names: tuple[str, ...]) -> None:
    record = timed(
        (100, event(data=delta(**dict.fromkeys(names, "Okay")))),
        (120, event(data=delta(**dict.fromkeys(names, " so")))),
        (140, content("\n\n")),
        (160, content("42", "stop") + DONE),
    )
    assert record.ok
    assert record.chunks == 4
    assert record.first_token_ns == 100 * MS
    assert record.first_content_ns == 140 * MS
    assert record.text == "\n\n42"
    assert record.reasoning == "Okay so"


def test_a_tool_call_is_generated_text_without_visible_text() -> None:
    def call(**function: str) -> bytes:
        return event(data=delta(tool_calls=[{"index": 0, "function": function}]))

    record = timed(
        (100, call(name="f", arguments="")),
        (120, call(arguments='{"a"')),
        (140, call(arguments=":1}")),
        (150, event(data=delta("tool_calls") | {"usage": usage(14)}) + DONE),
    )
    assert record.ok
    assert record.tool_call
    assert record.first_token_ns == 100 * MS
    assert record.chunks == 3
    assert record.output_tokens == 14
    assert record.text == ""


def test_an_empty_tool_call_is_no_token() -> None:
    empty = event(data=delta(tool_calls=[{"index": 0, "function": {"name": None, "arguments": ""}}, {"index": 1}]))
    record = timed((100, empty), (200, content("a", "stop") + DONE))
    assert record.first_token_ns == 200 * MS
    assert not record.tool_call


def test_comments_change_no_number_and_show_that_the_server_lives() -> None:
    plain = [(210, content("A")), (230, content("B", "stop") + DONE)]
    pings = [(10, b":\n\n"), (20, b": ping - 2026-01-01\n\n")]
    commented = [*pings, (210, content("A") + b": x\n"), (230, b": y\n\n" + content("B", "stop") + b":\n" + DONE)]
    first, second = timed(*plain), timed(*commented)
    assert (first.first_chunk_ns, first.first_token_ns, first.chunks, first.end_ns) == (
        second.first_chunk_ns,
        second.first_token_ns,
        second.chunks,
        second.end_ns,
    )
    assert fold((at, data) for at, data in [(0, HEAD), *pings]).signs_of_life == 2


def test_events_of_one_read_share_its_stamp() -> None:
    stream = content("a") + content("b") + content("c") + content("d", "stop") + b"data: [DONE]"
    half, more = len(content("a")) // 2, 3 * len(content("a")) + 9
    answer = fold([(1, HEAD + stream[:half]), (2, stream[half:more]), (3, stream[more:])], eof_ns=9)
    record = answer.record()
    assert list(answer.stamps) == [2, 2, 2, 3]
    assert record.multi_chunk_reads == 1
    assert record.reads == 3
    assert record.ok
    assert record.flags == ("unterminated",)
    assert record.end_ns == 3


@pytest.mark.parametrize("place", ["own chunk", "no choices", "finish chunk"])
def test_usage_is_found_wherever_it_stands(place: str) -> None:
    tail = {
        "own chunk": event(data=STOP) + event(data={"choices": [], "usage": usage(4)}),
        "no choices": event(data=STOP) + event(data={"usage": usage(4)}),
        "finish chunk": event(data=STOP | {"usage": usage(4)}),
    }[place]
    record = timed(*[(at, content("x")) for at in (10, 20, 30, 40)], (50, tail + DONE))
    assert record.ok
    assert record.output_tokens == 4
    assert record.prompt_tokens == 9
    assert record.chunks == 4


def test_tokens_from_the_prefix_cache_are_read() -> None:
    told = event(data=STOP | {"usage": usage(1, prompt_tokens_details={"cached_tokens": 24})})
    assert record_of(HEAD + content("a") + told + DONE).cached_tokens == 24


@pytest.mark.parametrize("per_chunk", [1, 4, 16])
def test_tokens_come_from_usage_not_from_the_number_of_chunks(per_chunk: int) -> None:
    chunks = [(10 * per_chunk * k, content("x" * per_chunk)) for k in range(1, 16 // per_chunk + 1)]
    record = timed(*chunks, (170, event(data=STOP | {"usage": usage(16)}) + DONE))
    assert record.output_tokens == 16
    assert record.chunks == 16 // per_chunk


def test_all_chunks_in_one_clump_share_one_stamp_and_are_counted() -> None:
    stream = [content("x") for _ in range(60)]
    record = timed((16500, b"".join(stream)), (16505, event(data=STOP) + DONE))
    assert record.multi_chunk_reads == 1
    assert record.first_token_ns == record.last_token_ns


def test_running_usage_is_not_added_up() -> None:
    counts = [(10, 9), (50, 9), (None, None), (100, 9)]
    chunks = [
        event(data=delta(content="x") | {"usage": None if count is None else usage(count, prompt or 0)})
        for count, prompt in counts
    ]
    record = record_of(HEAD + b"".join(chunks) + event(data=STOP) + DONE)
    assert (record.output_tokens, record.prompt_tokens) == (100, 9)
    assert record.flags == ()


def test_usage_that_falls_is_flagged_and_the_largest_value_kept() -> None:
    chunks = [event(data=delta(content="x") | {"usage": usage(count)}) for count in (50, 10)]
    record = record_of(HEAD + b"".join(chunks) + event(data=STOP) + DONE)
    assert record.output_tokens == 50
    assert record.flags == ("usage_fell",)


@pytest.mark.parametrize("odd", [-1, "7", True, 1.5, None])
def test_usage_that_is_no_count_is_missing(odd: object) -> None:
    told = {"prompt_tokens": odd, "completion_tokens": 24.0}
    record = record_of(HEAD + content("a") + event(data=STOP | {"usage": told}) + DONE)
    assert (record.prompt_tokens, record.output_tokens) == (None, 24)


def test_tpot_is_missing_below_two_tokens_and_a_reply_without_a_token_has_failed() -> None:
    def reply(tokens: int) -> RequestRecord:
        chunks = [(10 * k, content("x")) for k in range(1, tokens + 1)]
        return timed((1, b": ok\n\n"), *chunks, (200, event(data=STOP | {"usage": usage(tokens)}) + DONE))

    one, none, ten = reply(1), reply(0), reply(10)
    rates = [tpot(record.first_token_ns, record.last_token_ns, record.output_tokens) for record in (one, none, ten)]
    assert rates == [None, None, pytest.approx(0.01)]
    assert [record.ok for record in (one, none, ten)] == [True, False, True]
    assert none.error_kind == "empty"
    assert ttft(one.sent_ns, one.first_token_ns) == pytest.approx(0.01)


def test_empty_streams_give_no_ttft_of_zero() -> None:
    good = [timed((100 + k, content("a", "stop") + DONE)) for k in range(4)]
    empty = [timed((3, event(data=delta(role="assistant")) + event(data=STOP) + DONE)) for _ in range(6)]
    times = [ttft(record.sent_ns, record.first_token_ns) for record in good + empty]
    assert times.count(None) == 6
    median = percentile(sorted(time for time in times if time is not None), 50)
    assert median == pytest.approx(0.1015)
    assert [record.ok for record in empty] == [False] * 6


def test_an_error_body_is_no_first_token() -> None:
    head = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Type: application/json\r\n"
    body = b'{"error": "too many requests", "error_type": "overloaded"}'
    record = record_of(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert (record.ok, record.error_kind, record.http_status) == (False, "http_429", 429)
    assert record.error == "too many requests; Retry-After: 7"
    assert record.first_token_ns is None
    assert record.first_chunk_ns is None
