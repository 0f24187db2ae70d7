"""The search for capacity against engines whose truth is known."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.plan.capacity import TIME_UP, Answer, Ask, Over, search
from deploytui.record.capacity import Capacity, Search
from deploytui.record.planned import By

Truth = Callable[[Ask], Answer | None]
GOOD, BAD = Answer(held=True), Answer(held=False, gate="ttft_ms.p95", why="TTFT p95 900 > 500 ms")
HOPELESS = Answer(held=False, hopeless=True, gate="ttft_ms.p95", why="TTFT p95 9000 > 500 ms")


def users(lowest: int = 1, highest: int = 1024, **more: int) -> Search:
    return Search(by="concurrency", lowest=float(lowest), highest=float(highest), **more)


def walked(asked: Search, truth: Truth) -> tuple[Capacity, list[Ask]]:
    """The capacity of an engine that answers by `truth`, and all that was measured."""
    walk, asks = search(asked), list[Ask]()
    try:
        ask = next(walk)
        while True:
            asks.append(ask)
            answer = truth(ask)
            ask = walk.send(answer) if answer is not None else walk.throw(Over(TIME_UP))
    except StopIteration as done:
        found: Capacity = done.value
        return found, asks


def up_to(limit: float, beyond: Answer = BAD) -> Truth:
    return lambda ask: GOOD if ask.asked <= limit else beyond


def test_the_capacity_is_the_last_load_before_the_gates_are_missed() -> None:
    found, asks = walked(users(tolerance=0), up_to(11))
    assert (found.value, found.first_bad, found.gate) == (11, 12, "ttft_ms.p95")
    assert found.why == "TTFT p95 900 > 500 ms"
    assert [ask.asked for ask in asks if ask.repeat == 0] == [1, 2, 4, 8, 16, 32, 12, 10, 11]
    assert found.complete
    assert not found.notes


def test_a_hopeless_load_is_measured_once_and_nothing_above_it() -> None:
    found, asks = walked(users(repeats=3), up_to(3, HOPELESS))
    assert (found.value, found.first_bad) == (3, 4)
    assert [ask.repeat for ask in asks if ask.asked == 4] == [0]
    assert max(ask.asked for ask in asks) == 4
    assert next(point for point in found.tried if point.asked == 4).hopeless


def test_even_the_lowest_load_may_be_too_much() -> None:
    found, _ = walked(users(8), up_to(3, HOPELESS))
    assert (found.value, found.first_bad, found.complete) == (None, 8, True)


def test_a_range_of_one_load_is_one_point() -> None:
    found, asks = walked(users(4, 4, repeats=2), up_to(3))
    assert (found.value, found.first_bad) == (None, 4)
    assert asks == [Ask(4, 0), Ask(4, 1)]


def test_a_capacity_above_the_range_is_said_to_be_open() -> None:
    found, asks = walked(users(1, 10), up_to(1000))
    assert (found.value, found.first_bad) == (10, None)
    assert "may be more" in found.notes[0]
    assert asks[-1].asked == 10


def test_noise_gets_further_repeats_then_counts_as_it_was_seen() -> None:
    def truth(ask: Ask) -> Answer:
        return Answer(held=True, settled=False) if ask.asked == 4 else up_to(4, HOPELESS)(ask)  # type: ignore[return-value]

    found, asks = walked(users(repeats=3, most_repeats=7), truth)
    assert sum(ask.asked == 4 for ask in asks) == 7
    assert found.value == 4
    assert "undecided after 7 repeats" in found.notes[0]


def test_noise_that_settles_needs_no_more_than_that() -> None:
    def truth(ask: Ask) -> Answer:
        return Answer(held=ask.asked <= 2, settled=ask.repeat >= 4, gate="ttft_ms.p95")

    found, asks = walked(users(1, 4, repeats=3, most_repeats=9), truth)
    assert max(ask.repeat for ask in asks) == 4
    assert not found.notes


def test_answers_that_contradict_each_other_are_told() -> None:
    found, _ = walked(users(), lambda ask: GOOD if ask.asked in (1, 2, 4, 16) else BAD)
    assert (found.value, found.first_bad) == (4, 5)
    assert any("At 16 the gates held, though at 5 they did not" in note for note in found.notes)


def test_the_end_of_the_engine_ends_the_search_and_counts_as_too_much() -> None:
    dead = Answer(held=False, hopeless=True, over="The engine ended.")
    found, _ = walked(users(), up_to(8, dead))
    assert (found.value, found.first_bad, found.complete) == (8, 16, False)
    assert found.notes == ("The engine ended.",)


@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 4))
def test_every_concurrency_is_found_to_one(truth: int, lowest: int, repeats: int) -> None:
    found, asks = walked(users(lowest, 256, repeats=repeats, tolerance=0), up_to(truth))
    if truth < lowest:
        assert (found.value, found.first_bad) == (None, lowest)
    else:
        assert (found.value, found.first_bad) == (truth, truth + 1)
    assert len(asks) <= repeats * 18
    assert all(float(ask.asked).is_integer() and lowest <= ask.asked <= 256 for ask in asks)


@given(st.floats(0.3, 900), st.sampled_from([0.01, 0.05, 0.3]))
def test_every_rate_is_found_within_the_tolerance(truth: float, tolerance: float) -> None:
    asked = Search(by="rate", lowest=0.25, highest=1000, repeats=1, tolerance=tolerance)
    found, _ = walked(asked, up_to(truth))
    assert found.value is not None
    assert found.first_bad is not None
    assert found.value <= truth < found.first_bad
    assert found.first_bad - found.value <= tolerance * found.value


@given(st.sampled_from(("concurrency", "rate")), st.integers(1, 200), st.integers(0, 40))
def test_time_may_end_at_any_moment_and_what_is_known_is_kept(by: By, truth: int, asks_left: int) -> None:
    asked = Search(by=by, lowest=1, highest=256)
    whole, all_asks = walked(asked, up_to(truth))
    left = iter(range(asks_left))
    found, asks = walked(asked, lambda ask: up_to(truth)(ask) if next(left, None) is not None else None)
    assert asks == all_asks[: len(asks)]
    assert found.complete is (len(all_asks) <= asks_left)
    assert found.tried == whole.tried[: len(found.tried)]
    if not found.complete:
        assert "time was up" in found.notes[-1]
        assert found.value is None or found.value <= truth
        assert found.first_bad is None or found.first_bad > truth


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_the_answer_never_hides_a_load_that_failed_below_it(answers: list[bool]) -> None:
    seen = iter(answers)
    truths: dict[float, Answer] = {}

    def truth(ask: Ask) -> Answer:
        return truths.setdefault(ask.asked, GOOD if next(seen, False) else BAD)

    found, _ = walked(users(), truth)
    failed = [point.asked for point in found.tried if not point.held]
    held = [point.asked for point in found.tried if point.held]
    assert found.first_bad == min(failed, default=None)
    assert found.value is None or found.first_bad is None or found.value < found.first_bad
    for load in held:
        if found.first_bad is not None and load > found.first_bad:
            assert any(f"At {load:.6g} the gates held" in note for note in found.notes)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_no_point_is_measured_more_often_than_allowed(most: int) -> None:
    _, asks = walked(users(1, 1, repeats=1, most_repeats=most), lambda _: Answer(held=True, settled=False))
    assert len(asks) == most
