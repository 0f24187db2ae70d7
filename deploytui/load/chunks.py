"""What one event of a completion stream says: generated text, how it ended, usage, or an error."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from deploytui.load.sse import Event

DONE = b"[DONE]"
TEXT_CAP = 500
"""Longest error text kept [characters]."""
ABORTED = frozenset({"abort", "error"})
"""Finish reasons by which a server says that it gave the request up."""

OWN_REASONS = {"eos_token": "stop", "stop_sequence": "stop"}
"""Finish reasons of Text Generation Inference's own endpoint in OpenAI's words; `length` is the same."""

_LONE_HALF = re.compile("[\ud800-\udfff]")


class Usage(Struct, frozen=True, gc=False):
    """Token counts as the server tells them; None where it does not."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None

    def is_above(self, newer: "Usage") -> bool:
        """Whether any count is larger than a newer one, though counts only grow."""
        if self is UNKNOWN:
            return False
        return any(old is not None and new is not None and new < old for old, new in _pairs(self, newer))

    def at_least(self, newer: "Usage") -> "Usage":
        """The larger of each count that is known."""
        if self is UNKNOWN:
            return newer
        known = ([count for count in pair if count is not None] for pair in _pairs(self, newer))
        return Usage(*(max(counts, default=None) for counts in known))


def _pairs(old: Usage, new: Usage) -> tuple[tuple[int | None, int | None], ...]:
    return (
        (old.prompt_tokens, new.prompt_tokens),
        (old.output_tokens, new.output_tokens),
        (old.cached_tokens, new.cached_tokens),
    )


UNKNOWN = Usage()
"""Before the server has told any count."""


class Chunk(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The facts of one event."""

    content: str = ""
    reasoning: str = ""
    tool_call: bool = False
    """A tool call's name or arguments grew."""
    finish_reason: str | None = None
    usage: Usage | None = None
    error: str | None = None
    done: bool = False
    bad_text: bool = False
    """The text held broken UTF-8, which was replaced."""

    @property
    def generated(self) -> bool:
        """Whether the event carries generated text of any channel."""
        return bool(self.content or self.reasoning or self.tool_call)


class _Function(Struct):
    name: Any = None
    arguments: Any = None


class _ToolCall(Struct):
    function: _Function | None = None


class _Delta(Struct):
    content: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    text: Any = None
    finish_reason: Any = None


class _Details(Struct):
    cached_tokens: Any = None


class _Usage(Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: _Details | None = None


class _Payload(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: Any = None
    message: Any = None
    detail: Any = None
    token: Any = None
    generated_text: Any = None
    details: Any = None


_decode = msgspec.json.Decoder(_Payload).decode
_NO_DELTA = _Delta()
_DONE_CHUNK = Chunk(done=True)


def parse(event: Event) -> Chunk:
    """The facts of an event; one that can't be read is an error in its own right."""
    data = event.data.strip()
    if data == DONE:
        return _DONE_CHUNK
    try:
        payload, bad_text = _payload(data)
    except (ValueError, RecursionError) as broken:
        return Chunk(error=_broken(event, broken))
    error = _error(payload) or (_text(payload.message) or _cut(data) if event.name == b"error" else None)
    if payload.choices is None and isinstance(payload.token, dict):
        return _own_chunk(payload.token, payload, error, bad_text)
    return _chunk(payload, error, bad_text)


def is_whole(data: bytes) -> bool:
    """Whether the data of an event whose end never came is complete all the same: `[DONE]` or a JSON object."""
    stripped = data.strip()
    if stripped == DONE:
        return True
    try:
        return isinstance(msgspec.json.decode(stripped), dict)
    except (ValueError, RecursionError):
        return False


def error_text(body: bytes) -> str:
    """The message in an HTTP error's body: the shapes of OpenAI, SGLang, TensorRT-LLM and FastAPI, or plain text."""
    try:
        payload = _decode(body)
    except (ValueError, RecursionError):
        return _cut(body.strip())
    found = _error(payload) or _text(payload.message) or payload.detail
    return (found if isinstance(found, str) else _json(found) if found else _cut(body.strip()))[:TEXT_CAP]


def _payload(data: bytes) -> tuple[_Payload, bool]:
    try:
        return _decode(data), False
    except msgspec.ValidationError:
        raise
    except ValueError:
        return _lenient(data)


def _lenient(data: bytes) -> tuple[_Payload, bool]:
    """Read what strict JSON refuses: broken UTF-8, a lone half of a surrogate pair, NaN in log probabilities."""
    import json

    text = data.decode(errors="replace")
    whole = json.dumps(json.loads(text), ensure_ascii=False)
    clean, halves = _LONE_HALF.subn("\ufffd", whole)
    return msgspec.convert(json.loads(clean), _Payload), bool(halves) or text.encode() != data


def _chunk(payload: _Payload, error: str | None, bad_text: bool) -> Chunk:
    content, reasoning, tool_call, finish = "", "", False, None
    for choice in payload.choices or ():
        delta = choice.delta or _NO_DELTA
        content += _text(delta.content) or _text(choice.text)
        reasoning += _text(delta.reasoning) or _text(delta.reasoning_content)
        tool_call = tool_call or _calls(delta)
        finish = _reason(choice.finish_reason) or finish
    if finish in ABORTED and error is None:
        error = f"the server ended the request with finish_reason {finish}"
    return Chunk(
        content=content,
        reasoning=reasoning,
        tool_call=tool_call,
        finish_reason=finish,
        usage=_usage(payload.usage),
        error=error,
        bad_text=bad_text,
    )


def _own_chunk(token: dict[str, Any], payload: _Payload, error: str | None, bad_text: bool) -> Chunk:
    """The facts of an event of Text Generation Inference's own endpoint: one token, and all of it with the last."""
    details = payload.details if isinstance(payload.details, dict) else {}
    reason = _reason(details.get("finish_reason"))
    finish = OWN_REASONS.get(reason or "", reason or "unknown") if isinstance(payload.generated_text, str) else None
    return Chunk(
        content="" if token.get("special") else _text(token.get("text")),
        finish_reason=finish,
        usage=Usage(_count(details.get("input_length")), _count(details.get("generated_tokens"))) if details else None,
        error=error,
        bad_text=bad_text,
    )


def _calls(delta: _Delta) -> bool:
    if not delta.tool_calls and delta.function_call is None:
        return False
    calls = [delta.function_call, *(call.function for call in delta.tool_calls or ())]
    return any(call is not None and bool(call.name or call.arguments) for call in calls)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):  # content as a list of typed parts
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def _reason(value: Any) -> str | None:
    if isinstance(value, dict):  # SGLang's own form
        value = value.get("type")
    return value if isinstance(value, str) and value else None


def _usage(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    return Usage(_count(usage.prompt_tokens), _count(usage.completion_tokens), _count(cached))


def _count(value: Any) -> int | None:
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _error(payload: _Payload) -> str | None:
    """The server's message; None when the event reports no failure (`error: null` does not)."""
    if payload.error:
        if isinstance(payload.error, dict):
            return (_text(payload.error.get("message")) or _json(payload.error))[:TEXT_CAP]
        return (_text(payload.error) or _json(payload.error))[:TEXT_CAP]
    if payload.object == "error":
        return (_text(payload.message) or "an error without a message")[:TEXT_CAP]
    return None


def _broken(event: Event, broken: Exception) -> str:
    if event.name == b"error":
        return _cut(event.data)
    why = str(broken) if isinstance(broken, msgspec.ValidationError) else "not JSON"
    return f"an event can't be read ({why}): {_cut(event.data)[:200]}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _cut(data: bytes) -> str:
    return data[: 4 * TEXT_CAP].decode(errors="replace")[:TEXT_CAP]
