"""What counts as a token, what ends a request, and what fails it."""

import pytest

from deploytui.definitions import percentile, tpot, ttft
from deploytui.load.sse import EVENT_CAP
from deploytui.record.trace import RequestRecord
from tests.load.replay import DONE, HEAD, STOP, cut, delta, event, fold, record_of

MS = 1_000_000


def timed(*events: tuple[int, bytes]) -> RequestRecord:
    """The record of events at their times [ms]; the head comes with the first."""
    first, *rest = events
    reads = [(first[0] * MS, HEAD + first[1]), *((at * MS, data) for at, data in rest)]
    return fold(reads).record()


def content(text: str, finish_reason: str | None = None) -> bytes:
    return event(data=delta(finish_reason, content=text))


def usage(completion: int, prompt: int = 9, **more: object) -> dict[str, object]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, **more}


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


def test_the_space_behind_data_is_optional() -> None:
    with_space = HEAD + content("A", "stop") + DONE
    without = with_space.replace(b"data: ", b"data:")
    assert record_of(without) == record_of(with_space)
    assert record_of(without + b"data:\n\n").ok


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


def test_a_character_cut_by_a_read_boundary_stays_whole() -> None:
    stream = HEAD + content("日😀", "stop") + DONE
    for place in range(1, len(stream)):
        assert record_of(stream[:place], stream[place:]).text == "日😀"
    assert record_of(*cut(stream, range(len(stream)))).text == "日😀"


@pytest.mark.parametrize("broken", [b"\xff", b"\xe6\x97", b"\\ud83d"])
def test_broken_text_is_replaced_and_flagged_never_a_crash(broken: bytes) -> None:
    record = record_of(HEAD + content("a@b", "stop").replace(b"@", broken) + DONE)
    assert record.ok
    assert record.text is not None
    assert record.text.startswith("a")
    assert "\ufffd" in record.text
    assert record.flags == ("bad_utf8",)


def test_log_probabilities_that_are_no_numbers_do_not_break_an_answer() -> None:
    record = record_of(HEAD + event(data=delta("stop", content="a") | {"x": 0}).replace(b'"x":0', b'"x":NaN') + DONE)
    assert record.ok
    assert record.flags == ()


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


@pytest.mark.parametrize(
    ("tail", "ok"),
    [(b"data: [DONE]", True), (b'data: {"choices":[],"usage":null}', False), (b'data: {"choices":[{"finish', False)],
)
def test_an_unterminated_last_event_counts_only_when_it_is_whole(tail: bytes, ok: bool) -> None:
    assert record_of(HEAD + content("a") + tail).ok is ok


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


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"message": "KV cache exhausted", "type": "server_error", "code": 500}, "KV cache exhausted"),
        ("KV cache exhausted", "KV cache exhausted"),
        ({"code": 500}, '{"code":500}'),
    ],
)
@pytest.mark.parametrize("before", [b"", content("a")])
@pytest.mark.parametrize("after", [b"", event(data=STOP) + DONE])
def test_an_error_inside_the_stream_fails_the_request_with_the_servers_words(
    error: object, words: str, before: bytes, after: bytes
) -> None:
    record = record_of(HEAD + before + event(data={"error": error}) + after)
    assert (record.ok, record.error_kind, record.error) == (False, "stream_error", words)
    assert record.chunks == (1 if before else 0)


def test_flat_and_named_error_events_fail_the_request_too() -> None:
    flat = event(data={"object": "error", "message": "gone", "code": 500})
    for errors in (
        flat,
        b'event: error\ndata: {"message": "gone"}\n\n',
        b"event: error\ndata: gone\n\n",
        b"error: gone\n\n",
    ):
        record = record_of(HEAD + content("a") + errors + DONE)
        assert (record.error_kind, record.error) == ("stream_error", "gone")


@pytest.mark.parametrize("nothing", [None, "", {}])
def test_an_error_field_without_an_error_is_no_failure(nothing: object) -> None:
    record = record_of(HEAD + event(data=delta("stop", content="a") | {"error": nothing}) + DONE)
    assert record.ok


def test_a_server_that_gives_a_request_up_has_failed_it() -> None:
    record = record_of(HEAD + content("a") + event(data=delta("abort")) + DONE)
    assert record.error_kind == "stream_error"


@pytest.mark.parametrize("payload", [b"nonsense", b"[1]", b'{"choices": 3}', b"[" * 5000])
def test_an_event_that_cannot_be_read_fails_the_request(payload: bytes) -> None:
    record = record_of(HEAD + content("a") + b"data: " + payload + b"\n\n" + event(data=STOP) + DONE)
    assert record.error_kind == "stream_error"
    assert record.error is not None
    assert record.error.startswith("an event can't be read")


@pytest.mark.parametrize("per_chunk", [1, 4, 16])
def test_tokens_come_from_usage_not_from_the_number_of_chunks(per_chunk: int) -> None:
    chunks = [(10 * per_chunk * k, content("x" * per_chunk)) for k in range(1, 16 // per_chunk + 1)]
    record = timed(*chunks, (170, event(data=STOP | {"usage": usage(16)}) + DONE))
    assert record.output_tokens == 16
    assert record.chunks == 16 // per_chunk


@pytest.mark.parametrize(
    ("tail", "ok", "flags"),
    [
        (b"", False, ()),
        (event(data=STOP), True, ("no_done",)),
        (DONE, True, ("no_finish_reason",)),
        (event(data=STOP) + DONE, True, ()),
    ],
)
def test_a_stream_needs_a_finish_reason_or_done(tail: bytes, ok: bool, flags: tuple[str, ...]) -> None:
    record = record_of(HEAD + content("a") + content("b") + content("c") + tail)
    assert record.ok is ok
    assert record.error_kind == (None if ok else "truncated")
    assert record.flags == flags
    assert record.chunks == 3


def test_a_line_of_300_kib_is_read_and_one_of_64_mib_fails_that_request_in_words() -> None:
    long = HEAD + content("x" * (300 << 10), "stop") + DONE
    assert record_of(*cut(long, range(0, len(long), 4096))).ok
    answer = fold([(1, HEAD + content("a") + b"data: "), *((2, b"x" * (1 << 20)) for _ in range(64))])
    record = answer.record()
    assert record.error_kind == "line_too_long"
    assert str(EVENT_CAP >> 20) in (record.error or "")
    assert record.chunks == 1
    assert record.reads < 12
    assert not answer.reusable


def test_all_chunks_in_one_clump_share_one_stamp_and_are_counted() -> None:
    stream = [content("x") for _ in range(60)]
    record = timed((16500, b"".join(stream)), (16505, event(data=STOP) + DONE))
    assert record.multi_chunk_reads == 1
    assert record.first_token_ns == record.last_token_ns


def test_a_compressed_stream_is_told_apart() -> None:
    head = HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    record = record_of(head + b"\x1f\x8b\x08 whatever")
    assert record.error_kind == "not_a_stream"
    assert "gzip" in (record.error or "")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "event: message", "id: 1"])
def test_line_ends_and_named_events_change_nothing_also_when_events_share_a_read(end: str, before: str) -> None:
    lines = (HEAD + content("a") + content("b", "stop") + DONE).partition(b"\r\n\r\n")
    begin = (before + end).encode() if before else b""
    body = lines[2].replace(b"data: ", begin + b"data: ").replace(b"\n", end.encode())
    assert record_of(HEAD + body) == record_of(HEAD + lines[2])


def test_an_event_split_over_two_data_lines_is_one_event() -> None:
    split = content("a", "stop").replace(b'"choices"', b'\ndata: "choices"')
    assert record_of(HEAD + split + DONE).text == "a"


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


def test_a_redirect_says_where_to() -> None:
    record = record_of(b"HTTP/1.1 307 Temporary\r\nLocation: https://x/v1\r\nContent-Length: 0\r\n\r\n")
    assert record.error_kind == "http_307"
    assert record.error == "HTTP status 307 without a message; Location: https://x/v1"


def test_a_page_in_place_of_a_stream_is_told_apart() -> None:
    record = record_of(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<h1>Welcome to nginx</h1>")
    assert record.error_kind == "not_a_stream"
    assert "text/html" in (record.error or "")
    assert "Welcome to nginx" in (record.error or "")


def test_a_connection_that_breaks_behind_a_complete_answer_does_no_harm() -> None:
    chunked = HEAD.replace(b"connection: close", b"transfer-encoding: chunked")
    body = content("a", "stop") + DONE
    answer = fold([(5, chunked + b"%x\r\n%b\r\n" % (len(body), body))], eof_ns=900)
    record = answer.record()
    assert record.ok
    assert record.end_ns == 5
    assert record.flags == ("unterminated",)
    assert not answer.reusable


def test_a_response_that_is_not_http_fails_in_words() -> None:
    record = record_of(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    assert record.error_kind == "bad_response"
    assert "SSH-2.0" in (record.error or "")


def test_text_is_kept_only_where_it_was_asked_for() -> None:
    from deploytui.load.answer import Answer

    answer = Answer(id=1, user=0, sent_ns=0)
    answer.read(HEAD + content("secret", "stop") + DONE, 1)
    answer.eof(2)
    assert answer.record().ok
    assert answer.record().text is None
