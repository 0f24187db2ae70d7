"""The bytes of a request."""

from pathlib import Path

import msgspec
import pytest

from deploytui.load.client import resolve
from deploytui.load.orders import LoadOrder, Prompt
from deploytui.load.render import Request, render
from deploytui.load.trouble import LoadError


def rendered(folder: Path, base_url: str, prompts: list[Prompt], **changes: object) -> list[Request]:
    """The requests of an order with these prompts."""
    path = folder / "prompts.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines(prompts))
    plain = {"base_url": base_url, "endpoint": "chat", "model": "m", "output_tokens": 4, "concurrency": 1}
    rest = {"prompts": str(path), "records": "", "stamps": ""}
    order = msgspec.convert(plain | rest | changes, LoadOrder)
    return [request for talk in render(order, resolve(base_url)) for request in talk]


def test_a_request_says_what_the_order_says_and_nothing_is_compressed(tmp_path: Path) -> None:
    changes: dict[str, object] = {
        "body": {"temperature": 0.0, "stream": False, "stream_options": {"x": 1}},
        "headers": {"Authorization": "Bearer k", "accept": "*/*"},
    }
    prompts = [Prompt(id=5, prompt="hi", max_tokens=9), Prompt(id=6, messages=[{"role": "user", "content": "yo"}])]
    first, second = rendered(tmp_path, "http://[::1]:8000/prefix/", prompts, **changes)
    head, _, body = first.content.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /prefix/v1/chat/completions HTTP/1.1"
    assert set(lines[1:]) == {
        "Host: [::1]:8000",
        "Content-Type: application/json",
        "Accept-Encoding: identity",
        "Authorization: Bearer k",
        "accept: */*",
        "X-Request-Id: 5",
        f"Content-Length: {len(body)}",
    }
    assert b'"stream":true' in body
    assert b'"stream_options":{"x":1,"include_usage":true}' in body
    assert b'"max_tokens":9' in body
    assert b'"messages":[{"role":"user","content":"hi"}]' in body
    assert b'"temperature":0.0' in body
    assert b'"max_tokens":4' in second.content
    assert b'"content":"yo"' in second.content


def test_the_completions_endpoint_gets_a_prompt(tmp_path: Path) -> None:
    (request,) = rendered(tmp_path, "http://127.0.0.1", [Prompt(id=0, prompt="hi")], endpoint="completions")
    assert request.content.startswith(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert b'"prompt":"hi"' in request.content


@pytest.mark.parametrize(
    ("changes", "prompt"),
    [
        ({"endpoint": "completions"}, Prompt(id=0, messages=[])),
        ({}, Prompt(id=0)),
        ({}, Prompt(id=-1, prompt="hi")),
        ({}, Prompt(id=2**32, prompt="hi")),
        ({"headers": {"X": "a\r\nY: b"}}, Prompt(id=0, prompt="hi")),
        ({"headers": {"X": "日"}}, Prompt(id=0, prompt="hi")),
    ],
)
def test_an_order_that_cannot_be_sent_is_refused(tmp_path: Path, changes: dict[str, object], prompt: Prompt) -> None:
    with pytest.raises(LoadError):
        rendered(tmp_path, "http://127.0.0.1:1", [prompt], **changes)
