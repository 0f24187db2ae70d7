"""The first root cause in a whole log: the line that the first rule of an ordered list knows."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec import Struct

from deploytui.engine.rule import Rule
from deploytui.record.facts import Failure

WHY_LENGTH = 500
"""Longest `why` [characters]: some engines end a line with the names of all they support."""

BLOCK = 512
"""Lines looked through together for the marks of all rules: most lines hold none."""

_QUOTED_SOURCE = re.compile(r"\braise [A-Za-z_.]+\(")
"""A traceback quotes the line that raises; the message itself comes later, filled in."""

_NO_FAULT = re.compile(r"^.{0,40}?\b(INFO|WARN|WARNING|DEBUG)\b")
"""The level of a line, near its start, by which the engine itself says that this is not why it ended."""

_WARNING = re.compile(r"^warnings\.warn\(|^\S+:\d+: \w*Warning: ")
"""What Python writes of a warning: place and text, and the source below it."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class Cause(Struct, frozen=True):
    """Why an engine failed, and the line that says so; the first line of a log is 1."""

    failure: Failure
    line: int


def find_cause(log: Iterable[str], rules: Sequence[Rule]) -> Cause | None:
    """The first root cause by the order of the rules, and of two lines the earlier; None when no rule knows a line."""
    best: tuple[int, int, str] | None = None
    seen: set[str] = set()
    for start, block in _blocks(log):
        here = _present(rules if best is None else rules[: best[0]], "\n".join(block))
        if not here:
            continue
        for offset, line in enumerate(block):
            _remember(seen, here, line)
            hit = _first(line, here, seen)
            if hit is not None and (best is None or hit < best[0]):
                best = (hit, start + offset, line)
    return None if best is None else Cause(_failure(rules[best[0]], best[2]), best[1])


def plain(line: str) -> str:
    """A line of a log without colours and cursor movements."""
    return _ANSI.sub("", line) if "\x1b" in line else line


def spoken(lines: Iterable[str]) -> list[str]:
    """What stands in lines with text, without Python's warnings: whoever ended for one says so otherwise."""
    texts = (plain(line).strip() for line in lines)
    return [text for text in texts if text and not _WARNING.search(text)]


def shortened(line: str, decisive: int = 0) -> str:
    """The line, cut to what stands round the place that decides when it is very long."""
    start = max(0, decisive - WHY_LENGTH // 2) if decisive > WHY_LENGTH // 2 and len(line) > WHY_LENGTH else 0
    part = line[start : start + WHY_LENGTH].strip()
    return ("…" if start else "") + part + ("…" if start + WHY_LENGTH < len(line) else "")


Candidates = list[tuple[int, Rule]]
"""Rules with their places in the list."""


def _blocks(log: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines by the block, with the number of the first."""
    lines, number = iter(log), 1
    while block := [plain(line) for line in islice(lines, BLOCK)]:
        yield number, block
        number += len(block)


def _present(rules: Sequence[Rule], text: str) -> Candidates:
    """The rules that a block of text may speak of."""
    found: dict[str, bool] = {}

    def holds(mark: str) -> bool:
        if mark not in found:
            found[mark] = mark in text
        return found[mark]

    return [
        (place, rule)
        for place, rule in enumerate(rules)
        if holds(rule.mark) or (rule.after and (holds(rule.after) or (rule.until and holds(rule.until))))
    ]


def _remember(seen: set[str], here: Candidates, line: str) -> None:
    """What the log said before: each `after`, by the pair it makes with its `until`."""
    for _, rule in here:
        if rule.after and rule.after in line:
            seen.add(_span(rule))
        elif rule.until and rule.until in line:
            seen.discard(_span(rule))


def _span(rule: Rule) -> str:
    return f"{rule.after}\n{rule.until}"


def _first(line: str, here: Candidates, seen: set[str]) -> int | None:
    for place, rule in here:
        if (
            rule.mark in line
            and (not rule.after or _span(rule) in seen)
            and re.search(rule.pattern, line)
            and not _QUOTED_SOURCE.search(line)
            and not _NO_FAULT.match(line)
        ):
            return place
    return None


def _failure(rule: Rule, line: str) -> Failure:
    match = re.search(rule.pattern, line)
    found = {name: text for name, text in (match.groupdict() if match else {}).items() if text is not None}
    piece = next((part for part in line.split("\r") if rule.mark in part), line)
    return Failure(
        kind=rule.kind,
        what=rule.what.format(**found),
        why=shortened(piece, piece.find(rule.mark)),
        fix=rule.fix.format(**found),
    )
