"""Which answers are right, and which have the form they were asked for."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.quality.checkers import Outcome, check
from deploytui.quality.tasks import Checker, Item


def item(checker: Checker, expected: Any = None, **fields: Any) -> Item:
    return Item(id="a", prompt="?", checker=checker, expected=expected, **fields)


def told(checked: Item, answer: str) -> tuple[bool, bool | None]:
    outcome = check(checked, answer)
    return outcome.correct, outcome.format_ok


@pytest.mark.parametrize(
    ("answer", "correct"), [("banana", True), (" banana\n", True), ("Banana", False), ("a banana", False)]
)
def test_exact_is_exact_but_for_blanks_round_it(answer: str, correct: bool) -> None:
    assert told(item("exact", "banana"), answer) == (correct, None)


def test_blanks_count_where_the_item_says_so() -> None:
    assert told(item("exact", "banana", strip=False), "banana\n") == (False, None)


def test_any_of_several_expected_texts_will_do() -> None:
    checked = item("contains", ["7", "seven"])
    assert [check(checked, text).correct for text in ("Seven days.", "7", "six")] == [True, True, False]


def test_contains_does_not_care_for_case() -> None:
    assert check(item("contains", "Paris"), "PARIS, of course").correct
    assert not check(item("contains", "Paris"), "Lyon").correct


def test_a_pattern_is_searched_anywhere() -> None:
    assert check(item("regex", r"\bcat\b"), "the cat sat").correct
    assert not check(item("regex", r"\bcat\b"), "concatenate").correct


@pytest.mark.parametrize(
    ("answer", "correct", "form"),
    [
        ("Yes.", True, True),
        ("No, yes would be wrong", False, True),
        ("I can't say", False, False),
        ("know nothing", False, False),
        ("YES", True, True),
    ],
)
def test_the_first_choice_in_an_answer_counts(answer: str, correct: bool, form: bool) -> None:
    assert told(item("choice", "yes"), answer) == (correct, form)


def test_the_word_a_is_not_the_choice_a() -> None:
    letters = item("choice", "B", choices=("A", "B", "C"))
    assert told(letters, "It is a good question: B") == (True, True)


def test_the_longer_of_two_choices_at_one_place_counts() -> None:
    assert check(item("choice", "red wine", choices=("red", "red wine")), "Red wine").correct


@pytest.mark.parametrize(
    ("answer", "correct", "form"),
    [
        ("2 + 2 = 4", True, True),
        ("4", True, True),
        ("4.0", True, True),
        ("The answer is 4.", True, True),
        ("5", False, True),
        ("four", False, False),
        ("v4", False, False),
        ("1e999", False, True),
        ("nan", False, False),
    ],
)
def test_the_last_number_of_an_answer_counts(answer: str, correct: bool, form: bool) -> None:
    assert told(item("number", 4), answer) == (correct, form)


def test_thousands_may_be_grouped_and_a_tolerance_given() -> None:
    assert check(item("number", 1234567), "1,234,567").correct
    assert check(item("number", -3.14, tolerance=0.01), "about -3.149").correct
    assert not check(item("number", 3.14, tolerance=0.01), "3.2").correct


@pytest.mark.parametrize(
    ("expected", "answer", "correct", "form"),
    [
        ({"a": 1}, '{"a": 1}', True, True),
        ({"a": 1}, '{"a": 2}', False, True),
        ({"a": 1}, '```json\n{"a": 1}\n```', True, False),
        ({"a": 1}, 'Here: {"a": 1}', False, False),
        (None, "[]", True, True),
        (None, "```json\n[]\n```", False, False),
        (None, "NaN", False, False),
        (None, "[" * 100_000, False, False),
    ],
)
def test_json_must_parse_and_stand_alone(expected: Any, answer: str, correct: bool, form: bool) -> None:
    assert told(item("json", expected), answer) == (correct, form)


def test_a_right_answer_may_have_the_wrong_form() -> None:
    assert told(item("number", 20, format=r"\d+\.?"), "10 + 10 = 20") == (True, False)
    assert told(item("contains", "dog", format=r"[A-Z].*\."), "A dog.\nIt barks.") == (True, True)


def test_a_very_long_answer_is_searched_only_at_its_beginning() -> None:
    begun = time.monotonic()
    assert not check(item("regex", "x*y"), "x" * 2_000_000).correct
    assert time.monotonic() - begun < 30


@given(st.sampled_from(["exact", "contains", "regex", "choice", "number", "json"]), st.text())
def test_no_answer_makes_a_checker_fail(checker: Checker, answer: str) -> None:
    expected: Any = {"choice": "yes", "number": 4}.get(checker, "x")
    assert isinstance(check(item(checker, expected), answer), Outcome)


def test_a_broken_character_is_no_json_and_no_crash() -> None:
    assert told(item("json"), '"\ud800"') == (False, False)
