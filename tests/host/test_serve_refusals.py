"""What the shared door of the hosts refuses, and what it lets through."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.host.mocks import chat_body
from tests.host.toys import Toy, contents, toy


@pytest.fixture(scope="module")
def host() -> Iterator[Toy]:
    with toy() as started:
        yield started


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "model is missing"),
        (chat_body(n=2), "n = 2 is not supported"),
        (chat_body(n=True), "n = true is not supported"),
        (chat_body(logprobs=True), "logprobs = true"),
        (chat_body(tools=[{"type": "function"}]), "tools = "),
        (chat_body(response_format={"type": "json_object"}), "response_format = "),
        (chat_body(presence_penalty=0.5), "presence_penalty = 0.5"),
        (chat_body(temprature=0), "temprature = 0"),
        (chat_body(top_k=5), "top_k = 5 is not supported by this engine"),
        (chat_body(min_p=0.1), "min_p = 0.1 is not supported by this engine"),
        (chat_body(repetition_penalty=0), "repetition_penalty is 0"),
        (chat_body(temperature="hot"), "temperature is no number"),
        (chat_body(temperature=-1), "temperature is -1"),
        (chat_body(temperature=True), "temperature is no number"),
        (chat_body(top_p=float("nan")), "top_p is nan"),
        (chat_body(max_tokens=0), "max_tokens is 0"),
        (chat_body(max_tokens=1.5), "max_tokens is no whole number"),
        (chat_body(stop=[""]), "stop is a text"),
        (chat_body(stop=7), "stop is a text"),
        (chat_body(stream="yes"), "stream is true or false"),
        (chat_body(stream_options=7), "stream_options is not understood"),
        (chat_body(messages=[]), "messages is missing"),
        (chat_body(messages=["hi"]), "a message is an object"),
        (chat_body(messages=[{"role": "user"}]), "the content of a message is text"),
        (chat_body(messages=[{"role": "user", "content": [{"type": "image_url"}]}]), 'type "image_url"'),
        (chat_body(messages=[{"role": "user", "content": "a", "tool_calls": [1]}]), "messages with tool_calls"),
        (chat_body(messages=[{"role": "robot", "content": "a"}]), "the chat template refuses"),
        (chat_body(""), "the prompt has no tokens"),
    ],
)
def test_what_can_not_be_followed_is_refused_and_said(host: Toy, body: bytes, words: str) -> None:
    answer = host.send("POST", "/v1/chat/completions", body)
    assert answer.status == 400
    assert words in answer.json["error"]["message"]


def test_fields_that_ask_for_nothing_are_let_through(host: Toy) -> None:
    nothing: dict[str, Any] = {
        "n": 1,
        "top_k": -1,
        "min_p": 0,
        "repetition_penalty": 1,
        "logprobs": None,
        "logit_bias": {},
        "user": "me",
    }
    more = {
        "cache_prompt": False,
        "presence_penalty": 0.0,
        "response_format": {"type": "text"},
        "seed": 3,
        "stop": None,
    }
    assert contents(host.chat("say a", **nothing, **more)) == ["a"]


def test_parts_of_text_and_lists_of_ids_are_prompts_too(host: Toy) -> None:
    parts = [{"type": "text", "text": "say "}, {"type": "text", "text": "hi"}]
    assert contents(host.chat(messages=[{"role": "user", "content": parts}])) == ["h", "i"]
    assert host.text(list(b"say hi")).json["choices"][0]["text"] == "hi"  # type: ignore[arg-type]
    assert host.text(["say hi"]).json["choices"][0]["text"] == "hi"  # type: ignore[arg-type]


@pytest.mark.parametrize("prompt", [["a", "b"], [], [1, "a"], [True], -1, None])
def test_prompts_of_many_texts_or_none_are_refused(host: Toy, prompt: Any) -> None:
    assert host.text(prompt).status == 400


def test_another_model_is_not_found(host: Toy) -> None:
    answer = host.chat("say a", model="other")
    assert answer.status == 404
    assert "'other' does not exist; served is 'm'" in answer.json["error"]["message"]
