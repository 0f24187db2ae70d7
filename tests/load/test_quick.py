"""The short way for whole events says what the long way says, wherever the reads are cut."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from deploytui.load.answer import Answer
from deploytui.load.http1 import ResponseReader
from deploytui.load.quick import plain_text, token, whole_events
from deploytui.load.sse import EventReader
from deploytui.record.trace import RequestRecord
from tests.load.replay import DONE, cut, delta, event, told
from tests.load.server import END, HEAD, chunk

BODY = HEAD.partition(b"\r\n")[0] + b"\r\nTransfer-Encoding: chunked\r\n\r\n"

texts = st.text(st.characters(codec="utf-8"), max_size=12)
usages = st.none() | st.fixed_dictionaries({"completion_tokens": st.integers(0, 9), "prompt_tokens": st.just(4)})
deltas = st.one_of(
    st.builds(lambda text: {"content": text}, texts),
    st.builds(lambda text: {"reasoning": text, "content": None}, texts),
    st.builds(lambda text: {"reasoning_content": text}, texts),
    st.just({"role": "assistant", "content": ""}),
    st.just({"content": ["a", {"text": "part"}]}),
    st.builds(lambda text: {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}, texts),
    st.builds(lambda text: {"function_call": {"name": text}}, texts),
)


def chat(fields: dict[str, object], finish: str | None, usage: object) -> dict[str, object]:
    return {**delta(finish, **fields), "usage": usage}


payloads = st.one_of(
    st.builds(chat, deltas, st.sampled_from([None, None, None, "", "stop"]), usages),
    st.builds(lambda text: {"choices": [{"index": 0, "text": text}]}, texts),
    st.just({"choices": []}),
    st.just({"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}),
    st.just({"error": None, "choices": [{"delta": {"content": "c"}}]}),
    st.just({"error": {"message": "broken"}}),
    st.just({"object": "error", "message": "flat"}),
    st.just([1]),
)
framings = st.sampled_from(
    [
        chunk,
        lambda data: b"%X;ext=1\r\n%b\r\n" % (len(data), data),
        lambda data: b"%04x\r\n%b\r\n" % (len(data), data),
        lambda data: b"".join(chunk(part) for part in cut(data, [len(data) // 2, len(data) - 1])),
        lambda data: chunk(data.replace(b"\n", b"\r\n")),
        lambda data: chunk(data.replace(b"data: ", b"data:")),
        lambda data: chunk(b": ping\n\n" + data),
        lambda data: chunk(b"event: x\n" + data),
        lambda data: chunk(data + data),
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A chunked event stream of all kinds of events in all kinds of frames."""
    parts = [draw(framings)(event(data=payload)) for payload in draw(st.lists(payloads, max_size=8))]
    return BODY.replace(b"200 OK", b"200 OK\r\nContent-Type: text/event-stream") + b"".join(parts) + chunk(DONE) + END


def folded(reads: list[bytes]) -> Answer:
    answer = Answer(id=1, user=0, sent_ns=0, keep_text=True)
    for at_ns, data in enumerate(reads, 1):
        answer.read(data, at_ns)
    answer.eof(len(reads) + 1)
    return answer


def by_the_long_way(reads: list[bytes]) -> tuple[RequestRecord, list[int]]:
    """The same without the short one: a byte that belongs to nothing keeps it from beginning."""
    answer = Answer(id=1, user=0, sent_ns=0, keep_text=True)
    for at_ns, data in enumerate(reads, 1):
        if not answer.over:
            answer.reads += 1
            answer.user_reads += 1
            answer._read_ns = at_ns
            answer._take_bytes(data, at_ns)
    answer.eof(len(reads) + 1)
    return answer.record(), list(answer.stamps)


@given(stream=streams(), places=st.lists(st.integers(0, 4000), max_size=12))
def test_every_stream_in_every_packing_reads_as_by_the_long_way(stream: bytes, places: list[int]) -> None:
    reads = cut(stream, [place % len(stream) for place in places])
    answer = folded(reads)
    record, stamps = by_the_long_way(reads)
    assert told(answer.record()) == told(record)
    assert list(answer.stamps) == stamps


@given(stream=streams())
def test_byte_by_byte_reads_as_at_once(stream: bytes) -> None:
    at_once, single = folded([stream]), folded([stream[k : k + 1] for k in range(len(stream))])
    assert len(at_once.stamps) == len(single.stamps)
    assert at_once.record().text == single.record().text
    assert at_once.record().ok == single.record().ok


@given(st.lists(st.binary(max_size=40), max_size=5), st.binary(max_size=20))
@example([b"{}"], b"")
@example([b"a\nb"], b"8\r\nda")
def test_what_the_short_way_takes_is_what_http_and_events_say(payloads: list[bytes], rest: bytes) -> None:
    data = b"".join(chunk(b"data: " + payload + b"\n\n") for payload in payloads) + rest
    events, left = whole_events(data)
    assert data.endswith(left)
    http, sse = ResponseReader(), EventReader()
    http.feed(BODY)
    taken = data[: len(data) - len(left)]
    assert b"".join(chunk(b"data: " + payload + b"\n\n") for payload in events) == taken
    if b"\r" not in b"".join(events):
        assert [each.data for each in sse.feed(http.feed(taken))] == events
        assert sse.between_events
        assert http.between_chunks


@given(payloads)
def test_a_token_is_the_plain_text_of_a_read_of_one_event(payload: dict[str, object]) -> None:
    data = chunk(event(data=payload))
    assert token(data) == plain_text(msgspec.json.encode(payload))
    assert token(data + b"x") is None
    assert token(data[:-1]) is None
    assert token(data + data) is None
    assert token(data.replace(b"data: ", b"data:")) is None
    assert token(b"") is None


def test_only_plain_content_is_plain_text() -> None:
    assert plain_text(msgspec.json.encode(delta(content="hi"))) == "hi"
    assert plain_text(msgspec.json.encode({"choices": [{"text": "hi"}]})) == "hi"
    others: list[dict[str, object]] = [
        delta("stop", content="hi"),
        delta(content="hi", reasoning="x"),
        delta(content="hi", tool_calls=[]),
        {**delta(content="hi"), "usage": {"completion_tokens": 1}},
        {**delta(content="hi"), "error": "x"},
        {"choices": []},
    ]
    for other in others:
        assert plain_text(msgspec.json.encode(other)) is None
    assert plain_text(b"[DONE]") is None
    assert not plain_text(msgspec.json.encode(delta(content="")))
