"""The door that all hosts of libraries share: what a client sees of it, over real sockets."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.host.mocks import Answer, chat_body, request
from tests.host.toys import HOST, Toy, contents, lowered, toy

USAGE = {"include_usage": True}


@pytest.fixture(scope="module")
def host() -> Iterator[Toy]:
    with toy() as started:
        yield started


def test_a_chat_streams_role_then_a_chunk_a_token_then_finish_usage_and_done(host: Toy) -> None:
    answer = host.chat("say abc", stream_options=USAGE)
    assert answer.status == 200
    assert answer.complete
    first, *middle, finish, usage, done = answer.events
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [one["choices"][0]["delta"] for one in middle] == [{"content": letter} for letter in "abc"]
    assert finish["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    assert usage["choices"] == []
    # The token that ends the answer was generated, too.
    assert usage["usage"] == {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}
    assert done == "[DONE]"
    assert {one["object"] for one in answer.events[:-1]} == {"chat.completion.chunk"}
    assert len({one["id"] for one in answer.events[:-1]}) == 1


def test_a_completion_streams_text_without_a_role_and_no_usage_unless_asked(host: Toy) -> None:
    answer = host.text("say abc", stream=True)
    assert answer.deltas == ["a", "b", "c", ""]
    assert answer.finishes == [None, None, None, "stop"]
    assert all("usage" not in event for event in answer.events[:-1])


def test_each_token_is_an_http_chunk_of_its_own(host: Toy) -> None:
    assert sum(b'"content": "' in chunk for chunk in host.chat("say abc").chunks) == 1 + 3


def test_not_streamed_the_answer_is_whole_and_has_usage(host: Toy) -> None:
    chat, text = host.chat("say abc", stream=False).json, host.text("say abc").json
    assert chat["choices"][0]["message"] == {"role": "assistant", "content": "abc"}
    assert (chat["object"], text["object"]) == ("chat.completion", "text_completion")
    assert text["choices"][0]["text"] == "abc"
    assert chat["usage"] == text["usage"] == {"prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11}


@pytest.mark.parametrize("word", ["say", "str"])
def test_a_character_of_many_tokens_comes_whole_and_every_token_is_counted(host: Toy, word: str) -> None:
    answer = host.chat(f"{word} aé€👍", stream_options=USAGE, max_tokens=10)
    assert contents(answer) == ["a", "é", "€", "👍"]
    assert answer.events[-2]["usage"]["completion_tokens"] == 10


@pytest.mark.parametrize("word", ["say", "str"])
def test_a_character_cut_by_the_limit_is_shown_as_broken_and_not_lost(host: Toy, word: str) -> None:
    answer = host.chat(f"{word} a€", stream_options=USAGE, max_tokens=3)
    assert "".join(contents(answer)) == "a\ufffd"
    assert answer.events[-2]["usage"]["completion_tokens"] == 3
    assert answer.finishes[-1] == "length"


def test_max_tokens_ends_it_with_length_and_the_newer_name_wins(host: Toy) -> None:
    answer = host.chat("loop ab", max_tokens=9, max_completion_tokens=3, stream_options=USAGE)
    assert contents(answer) == ["a", "b", "a"]
    assert answer.finishes[-1] == "length"
    assert answer.events[-2]["usage"]["completion_tokens"] == 3


def test_without_a_limit_it_may_fill_the_context(host: Toy) -> None:
    assert host.text("loop ab").json["usage"] == {"prompt_tokens": 7, "completion_tokens": 193, "total_tokens": 200}


def test_ignore_eos_goes_on_to_the_limit(host: Toy) -> None:
    answer = host.text("say ab", max_tokens=5, ignore_eos=True).json
    assert answer["choices"][0] == {"index": 0, "text": "ababa", "logprobs": None, "finish_reason": "length"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("stop", ["cd", ["zzz", "cd"]])
def test_a_stop_text_ends_the_answer_before_it_also_across_tokens(host: Toy, stop: Any, stream: bool) -> None:
    answer = host.text("say abccdef", stop=stop, stream=stream, stream_options=USAGE)
    text = "".join(answer.deltas) if stream else answer.json["choices"][0]["text"]
    usage = answer.events[-2]["usage"] if stream else answer.json["usage"]
    assert text == "abc"
    assert usage["completion_tokens"] == 5


def test_what_only_began_like_a_stop_text_is_shown_in_the_end(host: Toy) -> None:
    assert "".join(contents(host.chat("say abc", stop="cd"))) == "abc"


@pytest.mark.parametrize("stream", [True, False])
def test_an_engine_that_fails_at_once_is_an_http_error_and_the_next_request_is_served(host: Toy, stream: bool) -> None:
    answer = host.chat("boom 0", stream=stream)
    assert answer.status == 500
    assert answer.json["error"]["message"] == "ValueError: the abacus broke"
    assert contents(host.chat("say a")) == ["a"]


def test_an_engine_that_fails_in_mid_stream_is_an_error_event_and_no_done(host: Toy) -> None:
    answer = host.chat("boom 2")
    assert answer.status == 200
    assert contents(answer) == ["x", "x"]
    assert answer.events[-1]["error"] == {
        "message": "ValueError: the abacus broke",
        "type": "server_error",
        "code": 500,
    }
    assert answer.complete
    assert contents(host.chat("say a")) == ["a"]


@pytest.mark.parametrize(
    ("prompt", "limit", "words"),
    [("say " + "x" * 300, None, "the prompt has 304 tokens"), ("say x", 196, "the answer may have 196")],
)
def test_what_does_not_fit_the_context_is_refused_with_both_figures(
    host: Toy, prompt: str, limit: int | None, words: str
) -> None:
    answer = host.chat(prompt, max_tokens=limit)
    assert answer.status == 400
    error = answer.json["error"]
    assert words in error["message"]
    assert error["type"] == "exceed_context_size_error"
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (len(prompt), 200)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("POST", "/nowhere", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/health", 405),
        ("PUT", "/health", 501),
    ],
)
def test_paths_that_are_not_there(host: Toy, method: str, path: str, status: int) -> None:
    assert host.send(method, path).status == status


def test_bodies_without_a_length_or_of_a_silly_one_are_refused(host: Toy) -> None:
    heads = {
        b"POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n": 411,
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n": 413,
        b"POST /v1/completions HTTP/1.1\r\ncontent-length: -1\r\n\r\n": 411,
        b"nonsense\r\n\r\n": 400,
        b"GET /health HTTP/1.1\r\n" + b"x: y\r\n" * 200 + b"\r\n": 431,
    }
    for head, status in heads.items():
        with host.connect() as connection:
            connection.sendall(head)
            raw = b"".join(iter(lambda: connection.recv(65536), b""))
            assert Answer(raw).status == status


def test_it_tells_what_it_is(host: Toy) -> None:
    assert host.get("/health").json == {"status": "ok"}
    (model,) = host.get("/v1/models").json["data"]
    assert (model["id"], model["max_model_len"]) == ("m", 200)
    props = host.get("/props").json
    assert (props["engine"], props["version"], props["versions"]["abacus"]) == ("toy", "1.2", "0.1")
    assert (props["slots"], props["context_length"], props["dtype"]) == (1, 200, "none")
    assert props["batching"].startswith("none")
    assert host.get("/memory").json == {
        "allocated_bytes": 7,
        "reserved_bytes": None,
        "peak_allocated_bytes": None,
        "peak_reserved_bytes": None,
        "gpus": [],
    }


def test_no_file_of_its_folder_stands_for_a_module(host: Toy) -> None:
    assert str(HOST) not in host.get("/props").json["path"]


def test_the_metrics_count_tokens(host: Toy) -> None:
    def total(name: str) -> int:
        lines = host.get("/metrics").body.decode().splitlines()
        return int(next(line for line in lines if line.startswith(f"deploytui_host:{name} ")).split()[1])

    names = ("prompt_tokens_total", "generation_tokens_total")
    before = [total(name) for name in names]
    host.chat("say abc")
    assert [total(name) - was for name, was in zip(names, before, strict=True)] == [7, 4]
    assert total("requests_running") == total("requests_waiting") == 0


def test_a_connection_serves_many_requests(host: Toy) -> None:
    with host.connect() as connection:
        for prompt in ("say a", "boom 0", "say b"):
            connection.sendall(request("POST", "/v1/chat/completions", chat_body(prompt), x_request_id="r-1"))
            raw = b""
            while not raw.endswith(b"0\r\n\r\n") and b"abacus" not in raw:
                raw += connection.recv(65536)
            assert b"x-request-id: r-1" in lowered(Answer(raw)).head
