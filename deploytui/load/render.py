"""Requests as bytes, rendered before any clock runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from deploytui.load.client import Target
from deploytui.load.orders import LoadOrder, Prompt
from deploytui.load.stamps import MAX_ID
from deploytui.load.trouble import LoadError

_PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
_encode = msgspec.json.Encoder().encode


class Request(Struct, frozen=True, gc=False):
    """One request, ready to be sent."""

    id: int
    content: bytes


def read_prompts(path: str) -> list[Prompt]:
    """The prompts of an order, in order; raises LoadError."""
    try:
        prompts = msgspec.json.Decoder(Prompt).decode_lines(Path(path).read_bytes())
    except OSError as error:
        raise LoadError(f"The prompts {path} can't be read.", why=str(error)) from error
    except ValueError as error:
        raise LoadError(f"The prompts {path} are broken.", why=str(error)) from error
    if not prompts:
        raise LoadError(f"The prompts {path} hold no prompt.")
    return prompts


def render(order: LoadOrder, target: Target, prompts: list[Prompt]) -> list[Request]:
    """The bytes of each request; raises LoadError for one that can't be sent."""
    line = f"POST {target.path}{_PATHS[order.endpoint]} HTTP/1.1\r\n"
    try:
        head = (line + "".join(_headers(order, target))).encode("latin-1")
    except UnicodeEncodeError as error:
        raise LoadError("A header or the path of the base URL can't be sent.", why=str(error)) from error
    return [_request(order, head, prompt) for prompt in prompts]


def _headers(order: LoadOrder, target: Target) -> Iterator[str]:
    headers = {
        "Host": target.authority,
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
    }
    for name, value in order.headers.items():
        if any(char in name + value for char in "\r\n\0") or not name or ":" in name:
            raise LoadError(
                f"The header {name!r} can't be sent.", fix="Headers hold no line breaks or colons in names."
            )
        headers = {known: kept for known, kept in headers.items() if known.lower() != name.lower()} | {name: value}
    return (f"{name}: {value}\r\n" for name, value in headers.items())


def _request(order: LoadOrder, head: bytes, prompt: Prompt) -> Request:
    if not 0 <= prompt.id <= MAX_ID:
        raise LoadError(f"The prompt id {prompt.id} is not within 0 and {MAX_ID}.")
    try:
        body = _encode(_body(order, prompt))
    except ValueError as error:
        raise LoadError(f"The prompt {prompt.id} can't be sent.", why=str(error)) from error
    return Request(
        prompt.id, b"%bX-Request-Id: %d\r\nContent-Length: %d\r\n\r\n%b" % (head, prompt.id, len(body), body)
    )


def _body(order: LoadOrder, prompt: Prompt) -> dict[str, Any]:
    options = order.body.get("stream_options")
    return {
        **order.body,
        "model": order.model,
        **_question(order, prompt),
        "max_tokens": order.output_tokens if prompt.max_tokens is None else prompt.max_tokens,
        "stream": True,
        "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True},
    }


def _question(order: LoadOrder, prompt: Prompt) -> dict[str, Any]:
    if order.endpoint == "completions":
        if prompt.prompt is None:
            raise LoadError(f"The prompt {prompt.id} has no text for the completions endpoint.")
        return {"prompt": prompt.prompt}
    if prompt.messages is not None:
        return {"messages": prompt.messages}
    if prompt.prompt is None:
        raise LoadError(f"The prompt {prompt.id} has neither text nor messages.")
    return {"messages": [{"role": "user", "content": prompt.prompt}]}
