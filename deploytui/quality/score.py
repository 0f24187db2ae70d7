"""Answers in, scores out. An item without an answer counts in the score and is told apart from a wrong one. Pure."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from deploytui.quality.checkers import Outcome, asks_form, check
from deploytui.quality.tasks import Item, Task
from deploytui.record.facts import Share
from deploytui.record.measured import Quality, TaskScore
from deploytui.record.metrics import share
from deploytui.record.trace import RequestRecord

STUCK = 8
"""As many repeats of one word or character, and nothing else, are a broken model's and not an answer."""
STUCK_AT_END = re.compile(r"(\S{1,8}?)\1{15,}\Z")
"""A text that ends in the same few characters over and over."""


class ItemResult(Struct, frozen=True, kw_only=True):
    """What became of one item; `answered` is false for an error, a cut-off answer and reasoning without an answer."""

    item: str
    answered: bool
    correct: bool
    format_ok: bool | None
    degenerate: bool
    why: str


def score_task(task: Task, records: Sequence[RequestRecord]) -> TaskScore:
    """The score over all items of a task; a record's `id` is the place of its item."""
    results = item_results(task, records)
    shaped = [result.format_ok for result in results if result.format_ok is not None]
    return TaskScore(
        task=task.name,
        sha256=task.sha256,
        score=share(sum(result.correct for result in results), len(results)),
        answered=share(sum(result.answered for result in results), len(results)),
        format_pass=share(sum(shaped), len(shaped)),
        degenerate=sum(result.degenerate for result in results),
    )


def item_results(task: Task, records: Sequence[RequestRecord]) -> tuple[ItemResult, ...]:
    """What became of each item, in the task's order."""
    by_place = {record.id: record for record in records}
    return tuple(_result(item, by_place.get(place)) for place, item in enumerate(task.items))


def total(scores: Iterable[TaskScore]) -> Quality:
    """All tasks together: every item weighs the same."""
    tasks = tuple(scores)
    return Quality(
        score=_pooled(task.score for task in tasks),
        answered=_pooled(task.answered for task in tasks),
        format_pass=_pooled(task.format_pass for task in tasks),
        tasks=tasks,
    )


def degenerate(text: str) -> bool:
    """Whether a text is empty, or one word or character over and over."""
    words = text.split()
    joined = "".join(words)
    if not joined:
        return True
    one_word = len(words) >= STUCK and len(set(words)) == 1
    one_character = len(joined) >= STUCK and len(set(joined)) == 1
    return one_word or one_character or STUCK_AT_END.search(joined[-400:]) is not None


def _result(item: Item, record: RequestRecord | None) -> ItemResult:
    if record is None:
        return _lost(item, "never asked", broken=False)
    if (why := _unanswered(record)) is not None:
        return _lost(item, why, broken=_says_nothing(record))
    text = record.text or ""
    outcome = check(item, text)
    broken = not outcome.correct and degenerate(text)
    if _cut_off(item, outcome, record):
        return _lost(item, "cut off at max_tokens", broken=broken)
    return _answered(item, outcome, broken=broken)


def _cut_off(item: Item, outcome: Outcome, record: RequestRecord) -> bool:
    """Whether the answer ended before it could be right; a choice that stands in it is made, whatever follows."""
    chose = item.checker == "choice" and outcome.format_ok is True
    return record.finish_reason == "length" and not outcome.correct and not chose


def _unanswered(record: RequestRecord) -> str | None:
    """Why there is no answer to check; None when there is one."""
    if not record.ok:
        return f"request failed: {record.error_kind or 'unknown'}"
    if record.text is None or not record.text.strip():
        return "reasoning only" if record.reasoning else "empty answer"
    return None


def _says_nothing(record: RequestRecord) -> bool:
    """Whether the model answered in good order, but with nothing."""
    if record.text or record.reasoning or record.tool_call:
        return False
    return record.ok or record.error_kind == "empty"


def _lost(item: Item, why: str, *, broken: bool) -> ItemResult:
    form = False if asks_form(item) else None
    return ItemResult(item=item.id, answered=False, correct=False, format_ok=form, degenerate=broken, why=why)


def _answered(item: Item, outcome: Outcome, *, broken: bool) -> ItemResult:
    return ItemResult(
        item=item.id,
        answered=True,
        correct=outcome.correct,
        format_ok=outcome.format_ok,
        degenerate=broken,
        why=outcome.why,
    )


def _pooled(shares: Iterable[Share]) -> Share:
    parts = [(round(part.value * part.n), part.n) for part in shares if part.value is not None]
    return share(sum(hits for hits, _ in parts), sum(n for _, n in parts))
