"""Scores: every item counts once, and no answer is told apart from a wrong one."""

import pytest

from deploytui.quality.score import degenerate, item_results, score_task, total
from deploytui.quality.tasks import Item, Task
from deploytui.record.metrics import share
from deploytui.record.trace import RequestRecord

CITIES = ("Paris", "Tokyo", "Rome", "Berlin")
TASK = Task(
    name="cities",
    sha256="0" * 64,
    items=tuple(Item(id=city, prompt="?", checker="contains", expected=city) for city in CITIES),
)


def answer(place: int, text: str | None, **fields: object) -> RequestRecord:
    given: dict[str, object] = {
        "id": place,
        "sent_ns": 0,
        "end_ns": 1,
        "ok": True,
        "finish_reason": "stop",
        "text": text,
    }
    return RequestRecord(**{**given, **fields})  # type: ignore[arg-type]


def test_the_score_is_over_all_items() -> None:
    score = score_task(TASK, [answer(0, "Paris"), answer(1, "Tokyo"), answer(2, "Milan"), answer(3, "Berlin")])
    assert (score.task, score.score.value, score.score.n) == ("cities", 0.75, 4)
    assert score.score.low is not None
    assert score.score.high is not None
    assert 0 < score.score.low < 0.75 < score.score.high < 1
    assert score.answered.value == 1.0


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (answer(3, "Berlin", ok=False, error_kind="timeout"), "request failed: timeout"),
        (answer(3, None, reasoning="Let me think"), "reasoning only"),
        (answer(3, ""), "empty answer"),
        (answer(3, "Well, the capital of", finish_reason="length"), "cut off at max_tokens"),
    ],
)
def test_what_was_not_answered_is_not_wrong_but_counts(record: RequestRecord, why: str) -> None:
    records = [answer(0, "Paris"), answer(1, "Tokyo"), answer(2, "Rome"), record]
    score = score_task(TASK, records)
    assert (score.score.value, score.score.n, score.answered.value) == (0.75, 4, 0.75)
    assert item_results(TASK, records)[3].why == why


def test_an_item_that_was_never_asked_counts_too() -> None:
    score = score_task(TASK, [answer(0, "Paris")])
    assert (score.score.value, score.answered.value, score.degenerate) == (0.25, 0.25, 0)


def test_a_cut_off_answer_that_is_right_is_right() -> None:
    score = score_task(TASK, [answer(0, "It is Paris, the city of", finish_reason="length")])
    assert (score.score.value, score.answered.value) == (0.25, 0.25)


def test_a_wrong_choice_is_wrong_however_long_it_goes_on() -> None:
    choice = Task(name="c", sha256="", items=(Item(id="a", prompt="?", checker="choice", expected="yes"),))
    (result,) = item_results(choice, [answer(0, "No, because it", finish_reason="length")])
    assert (result.answered, result.correct, result.format_ok) == (True, False, True)


def test_the_form_is_judged_only_where_one_is_asked() -> None:
    assert score_task(TASK, [answer(0, "Paris")]).format_pass == share(0, 0)
    numbers = Task(
        name="n",
        sha256="",
        items=tuple(Item(id=str(i), prompt="?", checker="number", expected=4) for i in range(2)),
    )
    assert score_task(numbers, [answer(0, "4"), answer(1, "four")]).format_pass == share(1, 2)
    assert score_task(numbers, [answer(0, "4")]).format_pass == share(1, 2)


@pytest.mark.parametrize(
    "text", ["", " \n", "6" * 16, "!!!!!!!!", "the " * 20, "a a a a a a a a", "So " + "ha" * 40, "�" * 9]
)
def test_rubbish_at_full_speed_is_seen(text: str) -> None:
    assert degenerate(text)


@pytest.mark.parametrize(
    "text", ["Paris.", "no no no", "aaa", "2 + 2 = 4", "The cat and the dog and the cow and the hen."]
)
def test_an_ordinary_answer_is_not_rubbish(text: str) -> None:
    assert not degenerate(text)


def test_degenerate_answers_are_counted_and_errors_are_not() -> None:
    records = [
        answer(0, "!!!!!!!!!!!!"),
        answer(1, "", ok=False, error_kind="empty"),
        answer(2, None, ok=False, error_kind="connect"),
        answer(3, "6" * 30, finish_reason="length"),
    ]
    assert score_task(TASK, records).degenerate == 3


def test_a_right_answer_is_never_degenerate() -> None:
    repeat = Task(name="r", sha256="", items=(Item(id="a", prompt="?", checker="exact", expected="8" * 9),))
    assert score_task(repeat, [answer(0, "8" * 9)]).degenerate == 0


def test_all_tasks_together_weigh_every_item_the_same() -> None:
    one = score_task(TASK, [answer(0, "Paris")])
    single = Task(name="s", sha256="", items=TASK.items[:1])
    two = score_task(single, [answer(0, "Paris")])
    quality = total([one, two])
    assert quality.score == share(2, 5)
    assert quality.tasks == (one, two)
    assert quality.format_pass.value is None


def test_without_tasks_there_is_no_score() -> None:
    assert total([]).score == share(0, 0)
    assert total([]).score.value is None
