"""Whether an answer is right, and whether it has the form it was asked for. Pure."""

import math
import re
from typing import Any

import msgspec
from msgspec import Struct

from deploytui.quality.tasks import Item, choices_of

REGEX_CHARS = 8_000
"""No more of an answer is searched by a pattern: backtracking grows with the text."""

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one answer; `format_ok` is None where the item asks for no form."""

    correct: bool
    format_ok: bool | None
    why: str


def check(item: Item, answer: str) -> Outcome:
    """The outcome of an answer to an item; `why` is one line for a reader of the report."""
    text = answer.strip() if item.strip else answer
    outcome = _CHECKS[item.checker](item, text)
    if item.format is None:
        return outcome
    shaped = re.fullmatch(item.format, text[:REGEX_CHARS], re.DOTALL) is not None
    return msgspec.structs.replace(outcome, format_ok=shaped and outcome.format_ok is not False)


def asks_form(item: Item) -> bool:
    """Whether the item's answer must have a form: a pattern, a number, a choice or JSON."""
    return item.format is not None or item.checker in ("number", "choice", "json")


def _exact(item: Item, text: str) -> Outcome:
    return _told(text in _wanted(item), f"answered {_short(text)}")


def _contains(item: Item, text: str) -> Outcome:
    found = [want for want in _wanted(item) if want.casefold() in text.casefold()]
    return _told(bool(found), f"contains {found[0]!r}" if found else f"does not contain {_wanted(item)[0]!r}")


def _regex(item: Item, text: str) -> Outcome:
    found = re.search(item.expected, text[:REGEX_CHARS])
    return _told(found is not None, f"matches at {found.start()}" if found else "does not match")


def _choice(item: Item, text: str) -> Outcome:
    chosen = _chosen(choices_of(item), text)
    if chosen is None:
        return Outcome(correct=False, format_ok=False, why="chooses nothing")
    return Outcome(correct=chosen == item.expected, format_ok=True, why=f"chooses {chosen!r}")


def _chosen(choices: tuple[str, ...], text: str) -> str | None:
    """The choice that stands first in the text as a word; a single letter only as a capital, since `a` is a word."""
    places = []
    for choice in choices:
        found = re.search(rf"(?<!\w){re.escape(choice)}(?!\w)", text, re.NOFLAG if len(choice) == 1 else re.IGNORECASE)
        if found is not None:
            places.append((found.start(), -len(choice), choice))
    return min(places)[2] if places else None


def _number(item: Item, text: str) -> Outcome:
    """The last number counts: models tend to repeat the question's numbers first."""
    numbers = NUMBER.findall(text[:REGEX_CHARS])
    if not numbers:
        return Outcome(correct=False, format_ok=False, why="gives no number")
    value = float(numbers[-1].replace(",", ""))
    slack = max(item.tolerance, 1e-9 * abs(item.expected))
    correct = math.isfinite(value) and abs(value - item.expected) <= slack
    return Outcome(correct=correct, format_ok=True, why=f"gives {numbers[-1]}")


def _json(item: Item, text: str) -> Outcome:
    """JSON in a code fence may be right in content, but not in form."""
    plain, value = _parsed(text)
    fence = None if plain else FENCE.match(text)
    readable, value = _parsed(fence[1]) if fence else (plain, value)
    if not readable:
        return Outcome(correct=False, format_ok=False, why="is no JSON")
    correct = plain if item.expected is None else value == item.expected
    return Outcome(correct=correct, format_ok=plain, why="is JSON" if plain else "is JSON in a code fence")


def _parsed(text: str) -> tuple[bool, Any]:
    try:
        return True, msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False, None


_CHECKS = {
    "exact": _exact,
    "contains": _contains,
    "regex": _regex,
    "choice": _choice,
    "number": _number,
    "json": _json,
}


def _wanted(item: Item) -> list[str]:
    wanted = item.expected if isinstance(item.expected, list) else [item.expected]
    return [want.strip() for want in wanted] if item.strip else wanted


def _told(correct: bool, why: str) -> Outcome:
    return Outcome(correct=correct, format_ok=None, why=why)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
