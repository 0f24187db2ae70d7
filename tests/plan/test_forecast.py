"""What a run will send is told before it is sent."""

from typing import Any

import pytest

from deploytui.errors import ProfileError
from deploytui.plan.forecast import OPEN_LOOP_SLOTS, check_span, engine_slots, forecast
from deploytui.plan.inputs import NO_INPUTS
from deploytui.profile.load_schema import Burst, Closed, Constant, Load, Poisson, Ramp, Stage, Stages
from tests.plan.cases import profile


def told(load: Load, **workload: Any) -> str:
    """The forecast of a load, in one text."""
    return " ".join(forecast(profile(load=load, **workload).workload, NO_INPUTS))


def test_a_closed_loop_tells_its_requests_and_no_time() -> None:
    text = told(Closed(concurrency=2))
    assert text == "3 repeats × 20 requests = 60 requests a candidate, after 2 requests to warm up."


def test_a_sweep_tells_its_points_and_where_it_decides() -> None:
    text = told(Closed(concurrency=(1, 4)), decide_at=4)
    assert "2 points: concurrency 1, 4; gates and decision at 4." in text
    assert "2 points × 3 repeats × 20 requests = 120 requests" in text


@pytest.mark.parametrize(
    ("load", "seconds"),
    [
        (Constant(rate=2.0), "9.5"),
        (Poisson(rate=2.0), "9.5"),
        (Ramp(from_=1, to=1, seconds=5), "19"),
        (Stages(stages=(Stage(rate=1, seconds=9), Stage(rate=10, seconds=9))), "10"),
    ],
)
def test_an_open_loop_tells_how_long_it_sends(load: Load, seconds: str) -> None:
    assert f"sends for about {seconds} s" in told(load)


def test_a_burst_tells_how_many_connections_it_opens() -> None:
    assert "All 20 requests of a repeat are sent at once, each on a connection of its own." in told(Burst())


def test_turns_tell_what_a_request_is_and_what_a_rate_counts() -> None:
    text = told(Constant(rate=1.0), turns=4)
    assert "up to 4 turns" in text
    assert "the rate counts conversations" in text
    assert "sends for about 4 s" in text


def test_a_load_longer_than_the_session_is_refused_unless_something_ends_it() -> None:
    for rate in (1e-4, 1e-300):
        with pytest.raises(ProfileError, match="a session ends after 28800 s"):
            check_span(profile(load=Constant(rate=rate)), NO_INPUTS)
    check_span(profile(load=Constant(rate=1e-4), max_seconds=60.0), NO_INPUTS)
    check_span(profile(load=Closed(concurrency=1)), NO_INPUTS)


def test_an_engine_gets_a_slot_for_each_request_that_can_be_in_flight() -> None:
    assert engine_slots(profile(load=Closed(concurrency=(4, 64, 8)), decide_at=4).workload) == 64
    assert engine_slots(profile(load=Closed(concurrency=3)).workload) == 3
    assert engine_slots(profile(load=Burst()).workload) == OPEN_LOOP_SLOTS
    assert engine_slots(profile(load=Burst(), requests=5).workload) == 5
