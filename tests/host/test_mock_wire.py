"""Every option of the mock engine, as the bytes that a client gets."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.mocks import Answer, Mock, chat_body, mock, request, said

USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def plain() -> Iterator[Mock]:
    with mock() as engine:
        yield engine


def usages(answer: Answer) -> list[dict[str, Any]]:
    return [event["usage"] for event in answer.events if event != "[DONE]" and "usage" in event]


def test_a_chat_stream_has_a_role_then_tokens_then_its_finish_and_done(plain: Mock) -> None:
    answer = plain.chat(max_tokens=5)
    assert answer.status == 200
    assert answer.deltas[0] == {"role": "assistant", "content": ""}
    assert len(said(answer)) == 5
    assert answer.deltas[-1] == {}
    assert answer.finishes == [None] * 6 + ["length"]
    assert answer.events[-1] == "[DONE]"
    assert answer.complete
    assert usages(answer) == []


def test_one_event_is_one_chunk(plain: Mock) -> None:
    answer = plain.chat(max_tokens=2)
    assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in answer.chunks[:-1])
    assert answer.chunks[-1] == b""


def test_all_events_of_a_stream_say_whose_they_are(plain: Mock) -> None:
    events = plain.chat(max_tokens=3).events[:-1]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert {event["model"] for event in events} == {"m"}
    assert len({event["id"] for event in events}) == 1


def test_usage_comes_when_it_is_asked_for_and_counts_words_and_the_template(plain: Mock) -> None:
    answer = plain.chat(max_tokens=4, **USAGE)
    last = answer.events[-2]
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 3 + 7, "completion_tokens": 4, "total_tokens": 14}


def test_the_same_prompt_gets_the_same_words_and_another_gets_others(plain: Mock) -> None:
    first, again, other = plain.chat("a b c"), plain.chat("a b c"), plain.chat("a b d")
    assert said(first) == said(again)
    assert said(first) != said(other)
    assert len(said(first)) == 16
    assert first.finishes[-1] == "stop"


def test_a_completion_stream_has_text_and_no_template(plain: Mock) -> None:
    answer = plain.text(max_tokens=3, stream=True, **USAGE)
    assert [bool(text) for text in answer.deltas] == [True, True, True, False]
    assert {event["object"] for event in answer.events[:-1]} == {"text_completion"}
    assert answer.events[-2]["usage"]["prompt_tokens"] == 3


def test_an_answer_that_is_not_streamed_has_the_same_text(plain: Mock) -> None:
    whole, streamed = plain.chat(max_tokens=5, stream=False), plain.chat(max_tokens=5)
    assert whole.json["object"] == "chat.completion"
    assert whole.json["choices"][0]["message"]["content"] == "".join(said(streamed))
    assert whole.json["choices"][0]["finish_reason"] == "length"
    assert whole.json["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert plain.text(max_tokens=2).json["choices"][0]["text"].count(" ") == 2


def test_content_parts_and_both_names_of_the_limit_are_understood(plain: Mock) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "one two three"}]}]
    answer = plain.chat(messages=messages, max_completion_tokens=3, max_tokens=9)
    assert said(answer) == said(plain.chat(max_tokens=3))


def test_a_request_id_is_taken_over(plain: Mock) -> None:
    answer = plain.send("POST", "/v1/chat/completions", chat_body(max_tokens=1), x_request_id="abc")
    assert b"\r\nx-request-id: abc\r\n" in answer.head
    assert answer.events[0]["id"] == "chatcmpl-abc"


def test_a_connection_serves_one_request_after_another(plain: Mock) -> None:
    with plain.connect() as connection:
        for _ in range(2):
            connection.sendall(request("POST", "/v1/chat/completions", chat_body(max_tokens=2)))
            raw = b""
            while not raw.endswith(b"0\r\n\r\n"):
                raw += connection.recv(65536)
            assert len(said(Answer(raw))) == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{not json", 400),
        (b"[1]", 400),
        (b'{"model": "m", "messages": "hello"}', 400),
        (b'{"model": "m", "messages": [], "max_tokens": "x"}', 400),
        (b'{"model": "other", "messages": []}', 404),
    ],
)
def test_a_request_that_does_not_fit_gets_an_error_object(plain: Mock, body: bytes, status: int) -> None:
    answer = plain.send("POST", "/v1/chat/completions", body)
    assert answer.status == status
    assert answer.json["error"]["code"] == status


def test_the_other_pages_tell_state_and_that_it_is_simulated(plain: Mock) -> None:
    assert plain.get("/health").status == 200
    assert [model["id"] for model in plain.get("/v1/models").json["data"]] == ["m"]
    assert plain.get("/props").json["simulated"] is True
    assert plain.get("/props").json["version"]
    assert plain.get("/nowhere").status == 404
    assert plain.send("POST", "/nowhere").status == 404


def test_metrics_are_prometheus_text(plain: Mock) -> None:
    answer = plain.get("/metrics")
    assert b"content-type: text/plain; version=0.0.4" in answer.head
    assert answer.body.splitlines()[:2] == [b"# TYPE mock:requests_running gauge", b"mock:requests_running 0"]
    assert b"\nmock:requests_waiting 0\n" in answer.body
    assert b"\nmock:kv_cache_usage 0.0\n" in answer.body


def test_several_tokens_come_in_a_chunk() -> None:
    with mock("--tokens-per-chunk", "4") as engine:
        answer = engine.chat(max_tokens=10, **USAGE)
        assert [text.count(" ") for text in said(answer)] == [4, 4, 2]
        assert answer.events[-2]["usage"]["completion_tokens"] == 10


def test_tokens_are_paced() -> None:
    with mock("--ttft-ms", "60", "--itl-ms", "20") as engine:
        begun = time.monotonic()
        engine.chat(max_tokens=5)
        assert time.monotonic() - begun >= 0.14


def test_an_early_role_chunk_does_not_wait_for_the_prompt() -> None:
    with mock("--role-chunk", "early", "--ttft-ms", "60000") as engine, engine.connect() as connection:
        connection.sendall(request("POST", "/v1/chat/completions", chat_body()))
        raw = b""
        while b'"role": "assistant"' not in raw:
            raw += connection.recv(65536)
        assert len(Answer(raw).events) == 1


def test_a_stream_without_a_role_chunk_starts_with_a_token() -> None:
    with mock("--role-chunk", "none") as engine:
        assert "role" not in engine.chat(max_tokens=1).deltas[0]


def test_reasoning_comes_first_and_apart() -> None:
    with mock("--reasoning", "3", "--tokens-per-chunk", "2") as engine:
        deltas = engine.chat(max_tokens=6).deltas[1:-1]
        assert [next(iter(delta)) for delta in deltas] == ["reasoning_content"] * 2 + ["content"] * 2
        assert [text.count(" ") for delta in deltas for text in delta.values()] == [2, 1, 2, 1]
        message = engine.chat(max_tokens=6, stream=False).json["choices"][0]["message"]
        assert (message["reasoning_content"].count(" "), message["content"].count(" ")) == (3, 3)


def test_usage_can_be_in_the_finish_chunk() -> None:
    with mock("--usage", "finish") as engine:
        answer = engine.chat(max_tokens=2)
        assert answer.events[-2]["choices"][0]["finish_reason"] == "length"
        assert answer.events[-2]["usage"]["completion_tokens"] == 2
        assert len(usages(answer)) == 1


def test_usage_can_be_in_every_chunk() -> None:
    with mock("--usage", "every") as engine:
        counts = [usage["completion_tokens"] for usage in usages(engine.chat(max_tokens=3))]
        assert counts == [1, 2, 3, 3, 3]


def test_usage_can_be_missing_whatever_was_asked() -> None:
    with mock("--usage", "never") as engine:
        assert usages(engine.chat(max_tokens=2, **USAGE)) == []
        assert "usage" not in engine.chat(max_tokens=2, stream=False).json


def test_the_finish_reason_can_be_in_the_last_token_chunk_with_its_usage() -> None:
    with mock("--finish", "last", "--usage", "finish") as engine:
        answer = engine.chat(max_tokens=2)
        assert answer.finishes == [None, None, "length"]
        assert answer.deltas[-1]["content"]
        assert answer.events[-2]["usage"]["completion_tokens"] == 2


def test_a_stream_can_lack_finish_and_done() -> None:
    with mock("--finish", "none", "--no-done") as engine:
        answer = engine.chat(max_tokens=2)
        assert answer.finishes == [None] * 3
        assert "[DONE]" not in answer.events
        assert answer.complete


def test_an_answer_can_stop_early() -> None:
    with mock("--ignore-max", "2") as engine:
        answer = engine.chat(max_tokens=9)
        assert len(said(answer)) == 2
        assert answer.finishes[-1] == "stop"


def test_a_known_prompt_needs_no_prefill() -> None:
    with mock("--prefix-cache", "--ttft-ms", "400") as engine:
        times = [time.monotonic()]
        first = engine.chat(max_tokens=1, **USAGE)
        times.append(time.monotonic())
        again = engine.chat(max_tokens=1, **USAGE)
        times.append(time.monotonic())
        assert usages(first)[0]["prompt_tokens_details"] == {"cached_tokens": 0}
        assert usages(again)[0]["prompt_tokens_details"] == {"cached_tokens": 10}
        assert times[2] - times[1] < times[1] - times[0]


def test_answers_come_from_a_file_and_end_by_themselves(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"capital": "?", "capital of France": "The capital is Paris."}), encoding="utf-8")
    with mock("--answer-file", str(path)) as engine:
        answer = engine.chat("What is the capital of France?", max_tokens=50)
        assert "".join(said(answer)) == "The capital is Paris."
        assert answer.finishes[-1] == "stop"
        cut = engine.chat("What is the capital of France?", max_tokens=2)
        assert ("".join(said(cut)), cut.finishes[-1]) == ("The capital", "length")
        padded = engine.chat("What is the capital of France?", max_tokens=50, ignore_eos=True)
        assert len(said(padded)) == 50
        assert len(said(engine.chat("else", max_tokens=5))) == 5


def test_rubbish_is_one_token_again_and_again() -> None:
    with mock("--rubbish") as engine:
        assert said(engine.chat(max_tokens=4)) == [" the"] * 4
