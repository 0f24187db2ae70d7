"""Requests as bytes, rendered before any clock runs: this worker's share of a prompts file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from deploytui.load.client import Target
from deploytui.load.orders import LoadOrder, Prompt
from deploytui.load.spool import Spool, Spooled
from deploytui.load.stamps import MAX_ID
from deploytui.load.trouble import LoadError

_PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "generate": "/generate_stream"}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Prompt).decode


class Request(Struct, frozen=True, gc=False):
    """One request, ready to be sent."""

    id: int
    rendered: bytes | Spooled
    at_s: float | None = None
    """When it shall leave, counted from the start of the load [s]; None in a closed loop."""
    conversation: int | None = None
    asked_tokens: int | None = None
    """The output length it asks for, where that is its own."""

    @property
    def content(self) -> bytes:
        """The bytes to send."""
        return self.rendered if isinstance(self.rendered, bytes) else self.rendered.read()


Talk = tuple[Request, ...]
"""The turns of a conversation in their order; a request that belongs to none is a talk of its own."""


def render(order: LoadOrder, target: Target) -> list[Talk]:
    """This worker's talks, in the order of the prompts file; raises LoadError for what can't be sent."""
    head = _head(order, target)
    talks: dict[int, list[Request]] = {}
    places: dict[int, int] = {}
    ids: set[int] = set()
    spool = Spool(Path(order.records).parent)
    for line, prompt in _prompts(order.prompts):
        where = f"Line {line} of the prompts {order.prompts}"
        if prompt.id in ids:
            raise LoadError(f"{where} has the id {prompt.id} of an earlier line.", fix="Give each line its own id.")
        ids.add(prompt.id)
        place = len(places)
        if prompt.conversation is not None:
            place = places.setdefault(prompt.conversation, place)
        else:
            places[-line] = place
        if place % order.shards == order.shard:
            talks.setdefault(place, []).append(_request(order, head, prompt, where, spool))
    if not ids:
        raise LoadError(f"The prompts {order.prompts} hold no prompt.")
    return [tuple(turns) for turns in talks.values()]


def _prompts(path: str) -> Iterator[tuple[int, Prompt]]:
    """Each prompt with its line number from 1; the file is never held as a whole."""
    line = 0
    try:
        with Path(path).open("rb") as file:
            for line, content in enumerate(file, 1):
                if not content.isspace():
                    yield line, _decode(content)
    except OSError as error:
        raise LoadError(f"The prompts {path} can't be read.", why=str(error)) from error
    except ValueError as error:
        raise LoadError(f"Line {line} of the prompts {path} is broken.", why=str(error)) from error


def _head(order: LoadOrder, target: Target) -> bytes:
    line = f"POST {target.path}{_PATHS[order.endpoint]} HTTP/1.1\r\n"
    try:
        return (line + "".join(_headers(order, target))).encode("latin-1")
    except UnicodeEncodeError as error:
        raise LoadError("A header or the path of the base URL can't be sent.", why=str(error)) from error


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


def _request(order: LoadOrder, head: bytes, prompt: Prompt, where: str, spool: Spool) -> Request:
    if not 0 <= prompt.id <= MAX_ID:
        raise LoadError(f"{where} has the id {prompt.id}, which is not within 0 and {MAX_ID}.")
    if prompt.at_s is not None and prompt.at_s < 0:
        raise LoadError(f"{where} is to leave {-prompt.at_s:g} s before the start.")
    try:
        body = _encode(_body(order, prompt, where))
    except ValueError as error:
        raise LoadError(f"{where} can't be sent.", why=str(error)) from error
    content = b"%bX-Request-Id: %d\r\nContent-Length: %d\r\n\r\n%b" % (head, prompt.id, len(body), body)
    return Request(prompt.id, spool.kept(content), prompt.at_s, prompt.conversation, prompt.max_tokens)


def _body(order: LoadOrder, prompt: Prompt, where: str) -> dict[str, Any]:
    output_tokens = order.output_tokens if prompt.max_tokens is None else prompt.max_tokens
    if order.endpoint == "generate":
        from deploytui.load.generate import generate_body  # late: most loads never need it

        return generate_body(_text(order, prompt, where), output_tokens, order.body)
    options = order.body.get("stream_options")
    return {
        **order.body,
        "model": order.model,
        **_question(order, prompt, where),
        "max_tokens": output_tokens,
        "stream": True,
        "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True},
    }


def _question(order: LoadOrder, prompt: Prompt, where: str) -> dict[str, Any]:
    if order.endpoint == "completions":
        return {"prompt": _text(order, prompt, where)}
    if prompt.messages is not None:
        return {"messages": prompt.messages}
    if prompt.prompt is None:
        raise LoadError(f"{where} has neither text nor messages.")
    return {"messages": [{"role": "user", "content": prompt.prompt}]}


def _text(order: LoadOrder, prompt: Prompt, where: str) -> str:
    if prompt.prompt is None:
        raise LoadError(f"{where} has no text for the {order.endpoint} endpoint.")
    return prompt.prompt
