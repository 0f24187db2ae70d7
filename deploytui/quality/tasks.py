"""Task files: JSONL, an item a line; `builtin:basic` comes with the package."""

import hashlib
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from deploytui.errors import ProfileError
from deploytui.load.orders import Prompt
from deploytui.profile.places import user_path

Checker = Literal["exact", "contains", "regex", "choice", "number", "json"]
NOT_YET = "json_schema"
BUILTIN = "builtin:"
ENDLESS = re.compile(r"\((?:\?:)?(?:\\.|\[[^\]]*\]|[^()\\])[+*]\)[+*{]")
"""A repeat of nothing but a repeat, such as `(a+)+`: it never ends on some answers and `a+` says the same."""

COMMON_CHOICES = (("yes", "no"), ("true", "false"), tuple("ABCDEFGHIJ"))
"""What an expected choice may be told apart from when an item names no `choices`."""


class Item(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question with what makes an answer right; `format` is a regex the whole answer must match."""

    id: Annotated[str, Meta(min_length=1)]
    prompt: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    checker: Checker
    expected: Any = None
    choices: tuple[str, ...] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    tolerance: Annotated[float, Meta(ge=0)] = 0.0
    strip: bool = True
    format: str | None = None


class Task(Struct, frozen=True, kw_only=True):
    """All items of one task file; `name` as the profile gives it, `sha256` of the file's bytes."""

    name: str
    items: tuple[Item, ...]
    sha256: str


def load_task(name: str, base_dir: Path) -> Task:
    """The task a profile names, a path relative to `base_dir` or `builtin:...`; ProfileError when it can't be used."""
    return parse_task(name, _builtin(name) if name.startswith(BUILTIN) else _file(name, base_dir))


def parse_task(name: str, content: bytes) -> Task:
    """The task in the bytes of a file; ProfileError names the line that is wrong."""
    items = tuple(_items(name, content))
    if not items:
        raise ProfileError(f"Task {name!r} has no items.", fix='Give it a line an item: {"id": ..., "prompt": ...}.')
    return Task(name=name, items=items, sha256=hashlib.sha256(content).hexdigest())


def prompts_for(task: Task, max_tokens: int) -> list[Prompt]:
    """One prompt an item, its `id` the place of the item; an item's own `max_tokens` goes before the profile's."""
    return [
        Prompt(
            id=place,
            prompt=item.prompt,
            messages=None if item.messages is None else list(item.messages),
            max_tokens=item.max_tokens or max_tokens,
        )
        for place, item in enumerate(task.items)
    ]


def choices_of(item: Item) -> tuple[str, ...]:
    """What the item's answer chooses from; empty when nobody says."""
    if item.choices:
        return item.choices
    return next((common for common in COMMON_CHOICES if item.expected in common), ())


def _builtin(name: str) -> bytes:
    folder = resources.files("deploytui.quality")
    known = sorted(entry.name.removesuffix(".jsonl") for entry in folder.iterdir() if entry.name.endswith(".jsonl"))
    if (wanted := name.removeprefix(BUILTIN)) not in known:
        names = ", ".join(BUILTIN + one for one in known)
        raise ProfileError(f"There is no built-in task {name!r}.", fix=f"Built-in tasks: {names}.")
    return (folder / f"{wanted}.jsonl").read_bytes()


def _file(name: str, base_dir: Path) -> bytes:
    path = base_dir / user_path(name)
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        fix = "Task paths are relative to the profile's folder."
        raise ProfileError(f"Task file {path} can't be read.", why=str(error), fix=fix) from error


def _items(name: str, content: bytes) -> Iterator[Item]:
    seen: dict[str, int] = {}
    # Only "\n" ends a line of JSONL: JSON texts may hold other line separators as they are.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        item = _item(f"Task {name!r}, line {number}", line)
        if (first := seen.setdefault(item.id, number)) != number:
            raise ProfileError(f"Task {name!r}, line {number}: id {item.id!r} stands in line {first} already.")
        yield item


def _item(place: str, line: bytes) -> Item:
    try:
        raw = msgspec.json.decode(line)
        _refuse_not_yet(place, raw)
        item = msgspec.convert(raw, Item)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProfileError(f"{place} is not a task item.", why=str(error), fix=_fix(error)) from error
    _examine(place, item)
    return item


def _refuse_not_yet(place: str, raw: Any) -> None:
    if isinstance(raw, dict) and raw.get("checker") == NOT_YET:
        raise ProfileError(
            f"{place}: the checker {NOT_YET!r} is not available yet.",
            fix="Use json (parses, and equals `expected` where it is given) or regex.",
        )


def _fix(error: Exception) -> str:
    if "checker" in str(error) or "enum" in str(error):
        return "Checkers: exact, contains, regex, choice, number, json."
    return 'An item is one JSON object in one line, such as {"id": "a", "prompt": "...", "checker": "contains", ...}.'


def _examine(place: str, item: Item) -> None:
    """Raise ProfileError when the item can't be asked or its answer can't be checked."""
    if (item.prompt is None) == (item.messages is None):
        raise ProfileError(f"{place}: item {item.id!r} needs either prompt or messages.")
    if not item.prompt and not _messages(item.messages):
        raise ProfileError(f"{place}: item {item.id!r} asks nothing.", fix="Each message needs a role and a content.")
    if (fault := _fault(item)) is not None:
        raise ProfileError(f"{place}: item {item.id!r} can't be checked: {fault}.")
    if item.format is not None:
        _compile(place, item.format)
    if item.checker == "regex":
        _compile(place, item.expected)


def _fault(item: Item) -> str | None:
    """What is wrong with the item's `expected`; None when nothing is."""
    expected = item.expected
    match item.checker:
        case "exact" | "contains" if not _texts(expected):
            return "expected must be a text, or a list of texts any of which will do"
        case "regex" if not isinstance(expected, str):
            return "expected must be a regular expression"
        case "choice" if not isinstance(expected, str) or expected not in choices_of(item):
            return "expected must be one of its choices"
        case "number" if isinstance(expected, bool) or not isinstance(expected, int | float):
            return "expected must be a number"
    return None


def _messages(messages: tuple[dict[str, Any], ...] | None) -> bool:
    return bool(messages) and all(message.get("role") and message.get("content") for message in messages or ())


def _texts(expected: Any) -> bool:
    texts = expected if isinstance(expected, list) else [expected]
    return bool(texts) and all(isinstance(text, str) and text.strip() for text in texts)


def _compile(place: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ProfileError(f"{place}: the pattern {pattern!r} does not compile.", why=str(error)) from error
    if ENDLESS.search(pattern):
        raise ProfileError(
            f"{place}: the pattern {pattern!r} repeats a repeat and may take for ever.", fix="Drop the outer repeat."
        )
