"""Intervals and sample sizes, on published figures and by simulation."""

import random
from math import comb, inf, sqrt
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploytui.compare.statistics import (
    contains,
    mean_interval,
    order_interval,
    overlap,
    repeat_interval,
    requests_to_settle,
    student_t,
    wider,
)
from deploytui.record.quantile import interval_ranks


@pytest.mark.parametrize(
    ("n", "ranks"), [(6, (1, 6)), (10, (2, 9)), (15, (4, 12)), (20, (6, 15)), (25, (8, 18)), (50, (18, 33))]
)
def test_the_ranks_of_the_median_are_those_of_the_sign_test_tables(n: int, ranks: tuple[int, int]) -> None:
    """Dixon and Massey, Introduction to Statistical Analysis, table A-25."""
    assert interval_ranks(n, 0.5) == ranks


@settings(deadline=None)
@given(st.integers(1, 300), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_ranks_cover_the_quantile_unless_the_sample_ends(n: int, q: float) -> None:
    low, high = interval_ranks(n, q)
    assert 1 <= low <= high <= n
    below = sum(comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(low))
    above = sum(comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(high, n + 1))
    assert low == 1 or below <= 0.025 + 1e-9
    assert high == n or above <= 0.025 + 1e-9


def test_a_million_samples_pin_a_percentile_closely() -> None:
    low, high = interval_ranks(1_000_000, 0.95)
    assert high - low == pytest.approx(2 * 1.96 * sqrt(1e6 * 0.95 * 0.05), rel=0.01)


def test_too_small_a_sample_ends_at_its_largest_value() -> None:
    values = [float(value) for value in range(20)]
    found = order_interval(values, 95)
    assert found is not None
    assert found[1] == 19.0
    assert order_interval([], 95) is None
    assert order_interval([3.0], 50) == (3.0, 3.0)


@pytest.mark.parametrize(
    ("freedom", "point"),
    [(1, 12.706), (2, 4.303), (10, 2.228), (30, 2.042), (31, 2.040), (40, 2.021), (60, 2.000), (120, 1.980)],
)
def test_student_t_is_that_of_the_tables(freedom: int, point: float) -> None:
    assert student_t(freedom) == pytest.approx(point, abs=1e-3)


def test_student_t_needs_a_degree_of_freedom() -> None:
    with pytest.raises(ValueError, match="degree"):
        student_t(0)


def test_the_spread_of_three_repeats_gives_student_s_interval() -> None:
    found = repeat_interval([9.0, 10.0, 11.0], around=10.0)
    assert found == pytest.approx((10 - 4.303 / sqrt(3), 10 + 4.303 / sqrt(3)))


def test_one_repeat_has_no_spread() -> None:
    assert repeat_interval([5.0], around=5.0) is None
    assert repeat_interval([], around=5.0) is None


def test_equal_repeats_leave_no_doubt() -> None:
    assert repeat_interval([5.0, 5.0, 5.0], around=5.0) == (5.0, 5.0)
    assert not contains((5.0, 5.0), 5.0)


def test_a_mean_of_one_value_has_no_interval() -> None:
    assert mean_interval(5.0, None, 1) is None
    assert mean_interval(5.0, 1.0, 4) == pytest.approx((5 - 3.182 / 2, 5 + 3.182 / 2))


def test_the_wider_of_two_intervals_is_taken() -> None:
    assert wider((1.0, 2.0), (0.0, 5.0)) == (0.0, 5.0)
    assert wider(None, (0.0, 5.0)) == (0.0, 5.0)
    assert wider(None, None) is None


def test_a_limit_outside_is_told_apart() -> None:
    assert contains((1.0, 3.0), 2.0)
    assert contains((1.0, 3.0), 3.0)
    assert not contains((1.0, 3.0), 3.1)
    assert not contains(None, 2.0)


def test_two_builds_that_swing_alike_show_no_difference() -> None:
    one, other = [100.0, 104.0, 97.0, 110.0, 95.0], [103.0, 99.0, 108.0, 101.0, 96.0]
    first, second = repeat_interval(one, fmean(one)), repeat_interval(other, fmean(other))
    assert first is not None
    assert second is not None
    assert overlap(first, second)


def called_better(shift: float, trials: int = 400) -> float:
    """How often repeats of two builds, 5 % noise each, are told apart."""
    draw = random.Random(7)
    hits = 0
    for _ in range(trials):
        one = [draw.gauss(100, 5) for _ in range(5)]
        other = [draw.gauss(100 * (1 + shift), 5) for _ in range(5)]
        first, second = repeat_interval(one, fmean(one)), repeat_interval(other, fmean(other))
        assert first is not None
        assert second is not None
        hits += not overlap(first, second)
    return hits / trials


def test_chance_alone_hardly_ever_names_a_winner() -> None:
    assert called_better(0.0) < 0.05


def test_a_third_more_is_nearly_always_seen() -> None:
    assert called_better(0.3) > 0.95


def test_four_times_the_requests_halve_the_interval() -> None:
    assert requests_to_settle(90.0, (80.0, 110.0), 100.0, 100) == 400


def test_the_near_side_of_the_interval_counts() -> None:
    assert requests_to_settle(110.0, (80.0, 111.0), 100.0, 100) == 900


@pytest.mark.parametrize(
    ("value", "interval", "limit"),
    [(100.0, (90.0, 110.0), 100.0), (50.0, (40.0, 60.0), 100.0), (50.0, (40.0, inf), 100.0)],
)
def test_where_no_number_settles_it_none_is_named(value: float, interval: tuple[float, float], limit: float) -> None:
    assert requests_to_settle(value, interval, limit, 100) is None


@settings(deadline=None)
@given(st.floats(1, 100), st.floats(0.1, 50), st.floats(0.01, 49), st.integers(1, 1000))
def test_more_requests_are_needed_than_there_are(value: float, half: float, distance: float, n: int) -> None:
    needed = requests_to_settle(value, (value - half, value + half), value + distance, n)
    assert needed is None or needed >= n
