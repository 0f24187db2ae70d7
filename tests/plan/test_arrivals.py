"""When the requests of an open loop leave."""

from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.plan.arrivals import arrivals, span_s
from deploytui.plan.loads import at_place, at_point
from deploytui.profile.load_schema import (
    Burst,
    Closed,
    Constant,
    Gamma,
    Load,
    Poisson,
    Ramp,
    Stage,
    Stages,
    TraceReplay,
)

rate = st.floats(0.01, 1e4)
stages = st.lists(st.builds(Stage, rate, st.floats(0.1, 100)), min_size=1, max_size=4).map(tuple)
open_loads: st.SearchStrategy[Load] = st.one_of(
    st.builds(Constant, rate=rate),
    st.builds(Poisson, rate=rate),
    st.builds(Gamma, rate=rate, burstiness=st.floats(0.05, 50)),
    st.just(Burst()),
    st.builds(Ramp, from_=rate, to=rate, seconds=st.floats(0.1, 1000)),
    st.builds(Stages, stages=stages),
)


def times(load: Load, count: int, seed: int = 0, *place: str) -> tuple[float, ...]:
    """The arrivals of an open loop."""
    found = arrivals(load, count, seed, *place)
    assert found is not None
    return found


def gaps(load: Load, count: int, seed: int = 0) -> list[float]:
    """The distances between arrivals [s]."""
    found = times(load, count, seed)
    return [later - earlier for earlier, later in pairwise(found)]


@given(open_loads, st.integers(0, 200), st.integers(0, 2**62), st.text(max_size=3))
def test_times_ascend_from_the_start_and_are_the_same_for_the_same_seed_and_place(
    load: Load, count: int, seed: int, place: str
) -> None:
    found = times(load, count, seed, place)
    assert len(found) == count
    assert list(found) == sorted(found)
    assert found[:1] in ((), (0.0,))
    assert times(load, count, seed, place) == found
    assert times(load, count + 5, seed, place)[:count] == found


@pytest.mark.parametrize("load", [Poisson(rate=3), Gamma(rate=3, burstiness=0.5)])
def test_another_seed_or_place_gives_other_times(load: Load) -> None:
    assert len({times(load, 20, seed, place) for seed in (0, 1) for place in ("r0", "r1")}) == 4


def test_a_closed_loop_has_no_times() -> None:
    assert arrivals(Closed(concurrency=3), 10, 0) is None
    assert span_s(Closed(concurrency=3), 10) is None


def test_a_constant_rate_keeps_equal_distances_and_a_burst_none() -> None:
    assert times(Constant(rate=4), 4) == (0, 0.25, 0.5, 0.75)
    assert times(Burst(), 3) == (0, 0, 0)


@given(st.integers(0, 2**32), st.floats(0.1, 1000))
def test_poisson_and_gamma_arrivals_have_the_asked_mean_rate(seed: int, rate: float) -> None:
    for load in (Poisson(rate=rate), Gamma(rate=rate, burstiness=0.5), Gamma(rate=rate, burstiness=4.0)):
        found = times(load, 2001, seed)
        assert found[-1] / 2000 == pytest.approx(1 / rate, rel=0.2)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0, 3.0, 20.0])
def test_burstiness_is_the_shape_of_the_distances(shape: float) -> None:
    found = gaps(Gamma(rate=10, burstiness=shape), 40_000)
    variation = pstdev(found) / fmean(found)
    assert fmean(found) == pytest.approx(0.1, rel=0.05)
    assert variation == pytest.approx(shape**-0.5, rel=0.05)


def test_a_gamma_of_burstiness_one_is_spread_as_poisson_is() -> None:
    for load in (Poisson(rate=1.0), Gamma(rate=1.0, burstiness=1.0)):
        found = sorted(gaps(load, 20_001))
        for share, expected in ((0.1, 0.1054), (0.5, 0.6931), (0.9, 2.3026)):
            assert found[int(share * 20_000)] == pytest.approx(expected, rel=0.06)


@given(rate, rate, st.floats(0.1, 100), st.integers(1, 300))
def test_a_ramp_has_sent_what_its_rate_adds_up_to(start: float, end: float, seconds: float, number: int) -> None:
    when = times(Ramp(from_=start, to=end, seconds=seconds), number + 1)[-1]
    if when <= seconds:
        sent = start * when + (end - start) * when * when / (2 * seconds)
    else:
        sent = (start + end) / 2 * seconds + end * (when - seconds)
    assert sent == pytest.approx(number, rel=1e-3, abs=1e-3)


def test_a_ramp_stays_at_its_last_rate() -> None:
    found = times(Ramp(from_=1, to=10, seconds=2), 60)
    assert found[-1] - found[-2] == pytest.approx(0.1)


def test_stages_follow_one_another_and_the_last_goes_on() -> None:
    load = Stages(stages=(Stage(rate=2, seconds=2), Stage(rate=10, seconds=1)))
    found = times(load, 40)
    assert found[:5] == (0, 0.5, 1, 1.5, 2)
    assert found[5] == pytest.approx(2.1)
    assert found[-1] - found[-2] == pytest.approx(0.1)


def test_a_trace_gives_its_own_times_at_its_speed() -> None:
    assert arrivals(TraceReplay(path="x", speed=2), 3, 0, trace_times_s=(0, 1, 5, 9)) == (0, 0.5, 2.5)


def test_points_of_a_rate_differ_in_their_scale_alone() -> None:
    load = Poisson(rate=(1.0, 4.0))
    slow, fast = (times(at_point(load, point), 50) for point in (0, 1))
    assert [4 * time for time in fast] == pytest.approx(list(slow))


def test_a_point_is_the_load_with_that_number() -> None:
    assert at_point(Closed(concurrency=(1, 4), think_time_s=1), 1) == Closed(concurrency=4, think_time_s=1)
    assert at_point(Gamma(rate=(1.0, 2.0), burstiness=0.5), 0) == Gamma(rate=1.0, burstiness=0.5)
    assert at_point(Burst(), 0) == Burst()
    assert at_place(Constant(rate=(1.0, 2.0)), 1.5) == Constant(rate=1.5)


def test_how_long_sending_takes_is_known_before() -> None:
    assert span_s(Constant(rate=2), 11) == 5
    assert span_s(Poisson(rate=2), 11) == 5
    assert span_s(Burst(), 11) == 0
    assert span_s(TraceReplay(path="x"), 2, (0.0, 3.0, 7.0)) == 3


def test_the_same_seed_gives_the_same_times_on_every_machine() -> None:
    assert times(Poisson(rate=1), 4, 0, "r0") == (0.0, 0.53083213, 1.603563238, 2.064467887)
    assert times(Gamma(rate=1, burstiness=0.5), 4, 0, "r0") == (0.0, 1.455173262, 1.458443649, 1.548367443)
