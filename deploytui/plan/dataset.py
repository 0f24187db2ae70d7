"""A dataset of prompts: JSONL of texts or messages, or conversations as ShareGPT has them. Pure."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

import msgspec
from msgspec import Struct

from deploytui.errors import ProfileError

Message = dict[str, Any]
ROLES = ("system", "developer", "user", "assistant", "tool")
SPEAKERS = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
}
"""Who speaks in a ShareGPT conversation, in the words of the chat endpoint."""
EXAMPLE = '{"prompt": "..."} or {"messages": [{"role": "user", "content": "..."}]}'


class Item(Struct, frozen=True, kw_only=True):
    """One thing to ask: a text, or messages."""

    place: str
    """Such as `line 3`."""
    prompt: str | None = None
    messages: tuple[Message, ...] = ()
    asks: tuple[int, ...] = ()
    """How many leading messages make up each request that can be asked: those up to each of the user's."""
    recorded: bool = False
    """Whether the messages are a conversation that took place, to be asked turn by turn, and not one request."""
    max_tokens: int | None = None
    """Of this item's answers; None leaves it to the workload."""

    def requests(self, turns: int) -> int:
        """How many requests it gives where `turns` are asked of each conversation."""
        return max(1, min(turns, len(self.asks)))

    def question(self, turn: int, turns: int) -> list[Message] | None:
        """The messages of that turn; None for a text. Asked for one turn, messages that are no record go whole."""
        if self.prompt is not None:
            return None
        ask = self.asks[-1] if turns == 1 and not self.recorded else self.asks[turn]
        return list(self.messages[:ask])


class Dataset(Struct, frozen=True, kw_only=True):
    """The items of a file, in its order."""

    name: str
    sha256: str
    items: tuple[Item, ...]
    skipped: int = 0
    """Conversations in which no user says anything."""


def parse_dataset(name: str, content: bytes) -> Dataset:
    """The dataset in the bytes of a file; ProfileError names the line, or the item of a list, that is wrong."""
    text = content.removeprefix(b"\xef\xbb\xbf")
    raws = _listed(name, text) if text.lstrip().startswith(b"[") else _lines(name, text)
    items, skipped = [], 0
    for place, raw in raws:
        item = _item(f"The dataset {name!r}, {place}", place, raw)
        if item is None:
            skipped += 1
        else:
            items.append(item)
    if not items:
        raise ProfileError(
            f"The dataset {name!r} is empty: it asks nothing.", fix=f"Give it a line an item: {EXAMPLE}."
        )
    return Dataset(name=name, sha256=hashlib.sha256(content).hexdigest(), items=tuple(items), skipped=skipped)


def _lines(name: str, text: bytes) -> Iterator[tuple[str, Any]]:
    """The items of a JSONL file."""
    decode = msgspec.json.Decoder().decode
    # Only "\n" ends a line of JSONL: JSON texts may hold other line separators as they are.
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            what = f"The dataset {name!r}, line {number} is not JSON."
            fix = f"A line is one object: {EXAMPLE}."
            raise ProfileError(what, why=str(error), fix=fix) from error


def _listed(name: str, text: bytes) -> Iterator[tuple[str, Any]]:
    """The items of a file that is one JSON list."""
    try:
        raws = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        where = re.search(r"\(byte (\d+)\)", str(error))
        line = text.count(b"\n", 0, int(where[1])) + 1 if where else None
        what = f"The dataset {name!r}{f', line {line}' if line else ''} is not JSON."
        raise ProfileError(what, why=str(error), fix="Correct it there, or write JSONL.") from error
    for number, raw in enumerate(raws, 1):
        yield f"item {number}", raw


def _item(where: str, place: str, raw: Any) -> Item | None:
    """The item; None for a conversation in which no user says anything."""
    if not isinstance(raw, dict):
        raise ProfileError(f"{where} is no object.", fix=f"Write {EXAMPLE}.")
    kinds = [key for key in ("prompt", "messages", "conversations") if raw.get(key) is not None]
    if len(kinds) != 1:
        said = f"has both {kinds[0]} and {kinds[1]}" if kinds else "has no prompt, messages or conversations"
        raise ProfileError(f"{where} {said}.", fix=f"Write {EXAMPLE}.")
    tokens = _max_tokens(where, raw)
    if kinds == ["prompt"]:
        return Item(place=place, prompt=_asking(where, raw["prompt"]), max_tokens=tokens)
    messages = _messages(where, raw) if kinds == ["messages"] else _spoken(where, raw["conversations"])
    asks = tuple(place + 1 for place, message in enumerate(messages) if message["role"] == "user")
    if not asks and kinds == ["conversations"]:
        return None
    if not asks:
        raise ProfileError(f"{where}: no message is the user's.", fix='Give it one with "role": "user".')
    recorded = kinds == ["conversations"]
    return Item(place=place, messages=tuple(messages), asks=asks, recorded=recorded, max_tokens=tokens)


def _asking(where: str, text: Any) -> str:
    if not isinstance(text, str) or not text:
        raise ProfileError(f"{where}: prompt is no text that asks anything.", fix=f"Write {EXAMPLE}.")
    return text


def _max_tokens(where: str, raw: dict[str, Any]) -> int | None:
    key = "max_tokens" if raw.get("max_tokens") is not None else "output_tokens"
    tokens = raw.get(key)
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1):
        raise ProfileError(f"{where}: {key} is {tokens!r}, not a number of tokens from 1 on.", fix="Correct it.")
    return tokens


def _messages(where: str, raw: dict[str, Any]) -> list[Message]:
    messages = raw["messages"]
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ProfileError(f"{where}: messages is no list of messages.", fix=f"Write {EXAMPLE}.")
    for number, message in enumerate(messages, 1):
        if (why := _odd(message)) is not None:
            raise ProfileError(f"{where}, message {number}: {why}.", fix="A message has a role and a content.")
    return list(messages)


def _odd(message: Message) -> str | None:
    """What is wrong with a message; None when nothing is."""
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        return f"its role is {role!r}, none of {', '.join(ROLES)}"
    if role == "assistant" and (content is None or content == "") and message.get("tool_calls"):
        return None
    if not isinstance(content, str | list):
        return "its content is no text"
    return "it says nothing" if role == "user" and not content else None


def _spoken(where: str, turns: Any) -> list[Message]:
    """The messages of a ShareGPT conversation, from its first question on; a system text before it stays."""
    if not isinstance(turns, list):
        raise ProfileError(f"{where}: conversations is no list.", fix='Write [{"from": "human", "value": "..."}, ...].')
    messages = [_said(f"{where}, turn {number}", turn) for number, turn in enumerate(turns, 1)]
    messages = [message for message in messages if message["content"]]
    first = next((place for place, message in enumerate(messages) if message["role"] == "user"), len(messages))
    return [message for message in messages[:first] if message["role"] == "system"] + messages[first:]


def _said(where: str, turn: Any) -> Message:
    speaker = turn.get("from") if isinstance(turn, dict) else None
    value = turn.get("value") if isinstance(turn, dict) else None
    role = SPEAKERS.get(speaker.lower()) if isinstance(speaker, str) else None
    if role is None:
        raise ProfileError(f"{where}: from is {speaker!r}.", fix=f"Speakers: {', '.join(SPEAKERS)}.")
    if not isinstance(value, str):
        raise ProfileError(f"{where}: value is no text.", fix='Write {"from": "human", "value": "..."}.')
    return {"role": role, "content": value}


def taken(items: Sequence[Item], order: Sequence[int], counts: Sequence[int], turns: int) -> list[list[int]]:
    """Which items each of several parts takes, one after the other in `order`, until each has its count of requests.

    All items are taken once before any is taken again.
    """
    endless = cycle(order)
    found = []
    for count in counts:
        own: list[int] = []
        filled = 0
        while filled < count:
            own.append(next(endless))
            filled += items[own[-1]].requests(turns)
        found.append(own)
    return found
