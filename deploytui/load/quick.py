"""The short way for what nearly every read is: whole HTTP chunks, each of one whole event with one token of text.

What is not exactly that is left to the readers of HTTP/1.1 and of event streams, which know everything else.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

_MOST = 4095
"""The longest chunk that goes the short way [bytes]."""
_SIZES = [b"%x" % size for size in range(_MOST + 1)]
"""Chunk sizes as servers write them."""
_HEX = b"0123456789abcdef"
_BEFORE, _BEHIND = b"\r\ndata: ", b"\n\n\r\n"
_FRAME = len(b"data: \n\n")
_MOST_DATA = _MOST - _FRAME


def _heads() -> list[bytes]:
    """What a chunk of one event begins with, by the length of all its bytes; empty where there is no such chunk."""
    heads = [b""] * (_MOST + 1)
    for size in range(_FRAME + 1, _MOST + 1):  # an event without data is none
        length = len(_SIZES[size]) + 2 + size + 2
        if length <= _MOST:
            heads[length] = _SIZES[size] + _BEFORE
    return heads


_HEADS = _heads()


class _Delta(Struct, gc=False):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: None = None
    function_call: None = None


class _Choice(Struct, gc=False):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: Literal[""] | None = None


class _Token(Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None


_Some = Annotated[str, Meta(min_length=1)]
_None = Literal[""] | None


class _SomeDelta(Struct, gc=False):
    content: _Some
    reasoning: _None = None
    reasoning_content: _None = None
    tool_calls: None = None
    function_call: None = None


class _ChatChoice(Struct, gc=False):
    delta: _SomeDelta
    finish_reason: _None = None


class _TextChoice(Struct, gc=False):
    text: _Some
    delta: None = None
    finish_reason: _None = None


class _ChatToken(Struct, gc=False):
    """What is more or less than one piece of content does not decode: many are told at once, without a look at each."""

    choices: tuple[_ChatChoice]
    usage: None = None
    error: None = None


class _TextToken(Struct, gc=False):
    choices: tuple[_TextChoice]
    usage: None = None
    error: None = None


Token = _ChatToken | _TextToken
"""An event that carries some content and nothing else."""

_decode = msgspec.json.Decoder(_Token).decode
_decode_chats = msgspec.json.Decoder(_ChatToken).decode_lines
_decode_texts = msgspec.json.Decoder(_TextToken).decode_lines


def token(data: bytes) -> str | None:
    """The content, where the bytes are one whole HTTP chunk of one event with nothing but content; else None."""
    length = len(data)
    if length > _MOST or not (head := _HEADS[length]) or not data.startswith(head) or not data.endswith(_BEHIND):
        return None
    # A line end more than the framing has would be one inside the event.
    return plain_text(data[len(head) : -len(_BEHIND)]) if data.count(b"\n") == 4 else None


def whole_events(data: bytes) -> tuple[list[bytes], bytes]:
    """The bytes' first HTTP chunks, as long as each is whole and of one whole event: the data of each, and the rest."""
    pieces = data.split(_BEHIND)
    rest = pieces.pop()
    # A line end more than the framing has would be one inside an event.
    plain = data.count(b"\n", 0, len(data) - len(rest)) == 4 * len(pieces)
    for place, piece in enumerate(pieces):
        size, _, payload = piece.partition(_BEFORE)
        length = len(payload)
        if not 0 < length <= _MOST_DATA or size != _SIZES[length + _FRAME] or not (plain or b"\n" not in payload):
            return pieces[:place], _BEHIND.join((*pieces[place:], rest))
        pieces[place] = payload
    return pieces, rest


def is_begun(rest: bytes) -> bool:
    """Whether the bytes are the first of an HTTP chunk of one event, of which no line has ended yet."""
    size, _, line = rest.partition(b"\r\n")
    if not size or size.strip(_HEX) or len(rest) > _MOST:
        return False
    return b"\n" not in line and size != b"0" and line[:6] == b"data: "[: len(line)]


def plain_text(payload: bytes) -> str | None:
    """The content of an event that carries nothing but content; None for any other."""
    try:
        choice = _decode(payload).choices[0]
    except ValueError:
        return None
    delta = choice.delta
    if delta is None:
        return choice.text
    return None if delta.reasoning or delta.reasoning_content else delta.content


def tokens(payloads: list[bytes]) -> Sequence[Token] | None:
    """The tokens that events are; None where one of them carries no content, or anything beside it."""
    decode: Callable[[bytes], Sequence[Token]] = _decode_chats if b'"delta":' in payloads[0] else _decode_texts
    try:
        found = decode(b"\n".join(payloads))
    except ValueError:
        return None
    return found if len(found) == len(payloads) else None


def text_of(token: Token) -> str:
    """Its content."""
    choice = token.choices[0]
    return choice.text if isinstance(choice, _TextChoice) else choice.delta.content
