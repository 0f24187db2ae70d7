"""What the mock engine answers: a request and the options in, timed events out. Pure."""

from __future__ import annotations

import argparse
import os
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

VERSION = "1.0"
KEY = "DEPLOYTUI_API_KEY"
TEMPLATE_TOKENS = 7
DEFAULT_TOKENS = 16
WORDS_TEXT = (
    "amber basin cedar delta ember fjord grove heron inlet jetty knoll larch marsh north ocean pebble "
    "quartz river stone tidal umber valley willow yarrow zephyr birch cliff dune field glade harbor island"
)
WORDS = WORDS_TEXT.split()


class RefusalError(Exception):
    """A request that can't be answered, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Ask(NamedTuple):
    """A request for completion."""

    chat: bool
    stream: bool
    prompt: str
    prompt_tokens: int
    max_tokens: int | None
    ignore_eos: bool
    include_usage: bool


class Beat(NamedTuple):
    """Something that happens in an answer, once so many of its tokens are there."""

    due: int
    """Tokens generated before it; -1 is at once, before the prompt is read."""
    act: str
    """event, error, cut or crash."""
    event: dict[str, Any]


def options() -> argparse.ArgumentParser:
    """The command line of the mock engine."""
    parser = argparse.ArgumentParser(
        description="A scriptable engine process without a model: every answer is simulated."
    )
    add, switch = parser.add_argument, argparse.BooleanOptionalAction
    add("--port", type=int, required=True, help="0 takes a free one and logs it")
    add("--host", default="127.0.0.1")
    add("--model", required=True, help="served name")
    add("--api-key", default=os.environ.get(KEY) or None, help="answer 401 without it; default $%s" % KEY)
    add("--ttft-ms", type=float, default=0.0, help="from having a slot to the first token")
    add("--itl-ms", type=float, default=0.0, help="from token to token")
    add("--itl-slope-ms", type=float, default=0.0, help="added from token to token for each further running request")
    add("--tokens-per-chunk", type=int, default=1)
    add("--role-chunk", choices=("none", "before", "early"), default="before", help="early: before the prompt is read")
    add("--reasoning", type=int, default=0, metavar="N", help="the first N tokens are reasoning_content")
    add(
        "--usage",
        choices=("final", "finish", "every", "never"),
        default="final",
        help="final: when the client asks for it",
    )
    add("--finish", choices=("own", "last", "none"), default="own", help="the chunk that carries finish_reason")
    add("--done", action=switch, default=True, help="end a stream with [DONE]")
    add("--error-after", type=int, metavar="N", help="an error event after N tokens")
    add("--cut-after", type=int, metavar="N", help="close the connection after N tokens")
    add("--crash-after", type=int, metavar="N", help="the process dies after N tokens of a request")
    add("--crash-after-requests", type=int, metavar="N", help="the process dies after N answers")
    add("--fail-every", type=int, metavar="N", help="every Nth request is answered with --fail-status")
    add("--fail-status", type=int, choices=(429, 500), default=500)
    add("--ignore-max", type=int, metavar="N", help="stop after N tokens, whatever was asked")
    add("--prefix-cache", action="store_true", help="a prompt seen before costs no prefill")
    add("--context", type=int, metavar="N", help="prompts of more tokens are refused")
    add("--crash-over-context", action="store_true", help="the process dies of them instead")
    add("--queue", type=int, metavar="N", help="429 when every slot is taken and N requests wait")
    add("--abort-leak", action="store_true", help="go on counting requests whose client left")
    add("--slots", type=int, metavar="N", help="requests served at once; more are queued")
    add("--answer-file", help="JSON: part of a prompt to the answer")
    add("--rubbish", action="store_true", help="one token again and again")
    add("--crlf", action="store_true", help="event lines end with CR LF")
    add("--split", type=int, metavar="N", help="events are written N bytes at a time")
    add("--keepalive-s", type=float, help="comments while the first token is awaited")
    add("--never-ready", action="store_true")
    add("--ready-after-s", type=float, default=0.0)
    add("--deaf", action="store_true", help="ignore SIGTERM, and so do its children")
    add("--grandchild", action="store_true", help="a child in a session of its own")
    add("--daemon", action="store_true", help="a double-forked descendant")
    add("--oom", action="store_true", help="log an out-of-memory failure and exit with 1")
    add("--fail-load", metavar="TEXT", help="log it and exit with 1")
    add("--log-env", metavar="NAME", help="log a variable of the environment, as careless engines do")
    add("--log-mb", type=int, default=0, help="MiB of log at the start")
    add("--host-mb", type=int, default=0, help="MiB of memory to hold")
    return parser


def read_ask(body: dict[str, Any], *, chat: bool, model: str) -> Ask:
    """The request; RefusalError when it does not fit."""
    if body.get("model", model) != model:
        raise RefusalError(404, f"The model `{body['model']}` does not exist.")
    prompt, extra = _messages(body.get("messages")) if chat else (_prompt(body.get("prompt")), 0)
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise RefusalError(400, "max_tokens must be a positive integer")
    return Ask(
        chat=chat,
        stream=bool(body.get("stream")),
        prompt=prompt,
        prompt_tokens=len(prompt.split()) + extra,
        max_tokens=limit,
        ignore_eos=bool(body.get("ignore_eos")),
        include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
    )


def _messages(messages: Any) -> tuple[str, int]:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise RefusalError(400, "messages must be a list of objects")
    texts = []
    for message in messages:
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [str(part.get("text", "")) for part in parts]
    return "\n".join(texts), TEMPLATE_TOKENS


def _prompt(prompt: Any) -> str:
    if isinstance(prompt, list):
        return " ".join(map(str, prompt))
    if not isinstance(prompt, str):
        raise RefusalError(400, "prompt must be a string or a list")
    return prompt


def tokens(ask: Ask, said: argparse.Namespace, answers: dict[str, str]) -> tuple[list[str], str]:
    """The tokens of the answer, reasoning first, and the finish reason: the same for the same request."""
    limit = ask.max_tokens if said.ignore_max is None else said.ignore_max
    known = [] if said.rubbish else _known(ask.prompt, answers)
    reason = _babble(ask.prompt, said.reasoning if ask.chat else 0, said.rubbish)
    if known and not ask.ignore_eos:
        whole = reason + known
    else:
        length = DEFAULT_TOKENS if limit is None else limit
        whole = reason + known + _babble(ask.prompt, length, said.rubbish)
        whole = whole[:length]
    kept = whole if limit is None else whole[:limit]
    ran_out = said.ignore_max is None and ask.max_tokens is not None and len(kept) >= ask.max_tokens
    return kept, "length" if ran_out else "stop"


def _known(prompt: str, answers: dict[str, str]) -> list[str]:
    fitting = max((part for part in answers if part in prompt), key=len, default=None)
    return [] if fitting is None else re.findall(r"\s*\S+", answers[fitting])


def _babble(prompt: str, count: int, rubbish: bool) -> list[str]:
    if rubbish:
        return [" the"] * count
    start = zlib.crc32(prompt.encode("utf-8", "replace"))
    return [" " + WORDS[(start + place * 7) % len(WORDS)] for place in range(count)]


def usage(ask: Ask, completion: int, cached: int | None) -> dict[str, Any]:
    """The usage object; `cached` None leaves the prefix cache out."""
    counted: dict[str, Any] = {
        "prompt_tokens": ask.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": ask.prompt_tokens + completion,
    }
    if cached is not None:
        counted["prompt_tokens_details"] = {"cached_tokens": cached}
    return counted


def beats(ask: Ask, said: argparse.Namespace, answers: dict[str, str], cached: int | None) -> Iterator[Beat]:
    """A streamed answer."""
    whole, finish = tokens(ask, said, answers)
    act, stop = interruption(said, len(whole))
    role = {"choices": [_choice(ask, {"role": "assistant", "content": ""}, None)]}
    if ask.chat and said.role_chunk != "none":
        yield Beat(-1 if said.role_chunk == "early" else 0, "event", role)
    last = len(whole) if act is None else stop
    for start, end in _chunks(last, said, ask):
        ends = act is None and end == last
        event = {"choices": [_choice(ask, _delta(ask, said, whole, start, end), None)]}
        if ends and said.finish == "last":
            event["choices"][0]["finish_reason"] = finish
        if said.usage == "every" or (ends and (said.usage, said.finish) == ("finish", "last")):
            event["usage"] = usage(ask, end, cached)  # type: ignore[assignment]
        yield Beat(start, "event", event)
    if act is not None:
        yield Beat(
            max(0, stop - 1), act, {"error": {"message": "simulated failure", "type": "server_error", "code": 500}}
        )
    else:
        yield from _ending(ask, said, last, finish, cached)


def interruption(said: argparse.Namespace, length: int) -> tuple[str | None, int]:
    """What breaks off an answer of this length, and after how many tokens; (None, 0) when nothing does."""
    planned = (("error", said.error_after), ("cut", said.cut_after), ("crash", said.crash_after))
    due = [(after, act) for act, after in planned if after is not None and after <= length]
    return (min(due)[1], min(due)[0]) if due else (None, 0)


def _ending(ask: Ask, said: argparse.Namespace, count: int, finish: str, cached: int | None) -> Iterator[Beat]:
    counted, due = usage(ask, count, cached), max(0, count - 1)
    if said.finish == "own":
        event: dict[str, Any] = {"choices": [_choice(ask, {} if ask.chat else "", finish)]}
        if said.usage in ("finish", "every"):
            event["usage"] = counted
        yield Beat(due, "event", event)
    if said.usage == "every" or (said.usage == "final" and ask.include_usage):
        yield Beat(due, "event", {"choices": [], "usage": counted})


def _chunks(count: int, said: argparse.Namespace, ask: Ask) -> Iterator[tuple[int, int]]:
    """Where chunks begin and end; none holds both reasoning and content."""
    border, start = said.reasoning if ask.chat else 0, 0
    while start < count:
        end = min(start + said.tokens_per_chunk, count, border if start < border else count)
        yield start, end
        start = end


def _delta(ask: Ask, said: argparse.Namespace, whole: list[str], start: int, end: int) -> Any:
    text = "".join(whole[start:end])
    if not ask.chat:
        return text
    return {"reasoning_content": text} if start < said.reasoning else {"content": text}


def _choice(ask: Ask, said: Any, finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta" if ask.chat else "text": said, "finish_reason": finish}


def answer(ask: Ask, said: argparse.Namespace, answers: dict[str, str], cached: int | None) -> dict[str, Any]:
    """A whole answer at once; RefusalError when it breaks off."""
    whole, finish = tokens(ask, said, answers)
    border = said.reasoning if ask.chat else 0
    message = {"role": "assistant", "content": "".join(whole[border:])}
    if border:
        message["reasoning_content"] = "".join(whole[:border])
    key, value = ("message", message) if ask.chat else ("text", message["content"])
    body: dict[str, Any] = {"choices": [{"index": 0, key: value, "finish_reason": finish}]}
    if said.usage != "never":
        body["usage"] = usage(ask, len(whole), cached)
    return body
