"""How a stream is read, what ends a request, and what fails it."""

import pytest

from deploytui.load.sse import EVENT_CAP
from tests.load.chats import content
from tests.load.replay import DONE, HEAD, STOP, cut, delta, event, fold, record_of


def test_the_space_behind_data_is_optional() -> None:
    with_space = HEAD + content("A", "stop") + DONE
    without = with_space.replace(b"data: ", b"data:")
    assert record_of(without) == record_of(with_space)
    assert record_of(without + b"data:\n\n").ok


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


@pytest.mark.parametrize(
    ("tail", "ok"),
    [(b"data: [DONE]", True), (b'data: {"choices":[],"usage":null}', False), (b'data: {"choices":[{"finish', False)],
)
def test_an_unterminated_last_event_counts_only_when_it_is_whole(tail: bytes, ok: bool) -> None:
    assert record_of(HEAD + content("a") + tail).ok is ok


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
