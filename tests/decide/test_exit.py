"""Exit statuses and their precedence."""

from itertools import combinations

import pytest

from deploytui.decide.exit import MEANINGS, PRECEDENCE, exit_status
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.record.words import DecisionWord

ORDER = [130, 2, 1, 5, 6, 4, 3, 0]


def made(word: DecisionWord, *found: str) -> Decision:
    reasons = tuple(Reason(code=code) for code in found)
    return Decision(decision=word, title="", verdicts=(Verdict(candidate="a", decision=word, reasons=reasons),))


@pytest.mark.parametrize(("word", "status"), [("accept", 0), ("tune", 3), ("reject", 4)])
def test_a_decision_has_its_status(word: DecisionWord, status: int) -> None:
    assert exit_status(made(word)) == status


def test_a_command_that_decides_nothing_is_done() -> None:
    assert exit_status(None) == 0


@pytest.mark.parametrize(
    ("flag", "status"), [("interrupted", 130), ("usage_error", 2), ("runner_failed", 1), ("regression", 5)]
)
def test_what_happened_wins_over_the_decision(flag: str, status: int) -> None:
    for decision in (None, made("accept"), made("tune", "gate_open"), made("reject")):
        assert exit_status(decision, **{flag: True}) == status


def test_of_two_things_that_happened_the_first_in_precedence_wins() -> None:
    flags = ["interrupted", "usage_error", "runner_failed", "regression"]
    for one, other in combinations(flags, 2):
        expected = dict(PRECEDENCE)[one]
        assert exit_status(made("reject"), **{one: True, other: True}) == expected


def test_an_open_gate_is_six_only_where_nothing_was_accepted() -> None:
    assert exit_status(made("tune", "gate_open")) == 6
    assert exit_status(made("reject", "gate_open")) == 6
    assert exit_status(made("accept", "gate_open")) == 0


def test_a_regression_among_the_reasons_is_five() -> None:
    assert exit_status(made("reject", "regression", "gate_open")) == 5


def test_the_table_is_in_the_documented_order_and_each_status_has_its_meaning() -> None:
    assert [status for _, status in PRECEDENCE] == ORDER[:-1]
    assert set(MEANINGS) == set(ORDER)
