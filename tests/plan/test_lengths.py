"""Lengths drawn from a distribution."""

from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.plan.lengths import draw_lengths, fixed, longest_possible
from deploytui.profile.load_schema import Lengths, Lognormal, Normal, Uniform
from tests.profile.strategies import lengths


@given(lengths(), st.integers(0, 50), st.integers(0, 2**62))
def test_lengths_are_within_their_limits_and_the_same_for_a_seed(asked: Lengths, count: int, seed: int) -> None:
    found = draw_lengths(asked, count, seed, "prompt", "r0")
    assert len(found) == count
    assert draw_lengths(asked, count, seed, "prompt", "r0") == found
    low = asked if isinstance(asked, int) else asked.min
    high = longest_possible(asked)
    assert all(low <= one and (high is None or one <= high) for one in found)


def test_another_seed_or_place_draws_others() -> None:
    asked = Uniform(min=1, max=1000)
    drawn = {tuple(draw_lengths(asked, 10, seed, place)) for seed in (0, 1) for place in ("r0", "r1")}
    assert len(drawn) == 4


def test_a_plain_number_is_the_length_of_all() -> None:
    assert draw_lengths(7, 3, 0) == [7, 7, 7]
    assert (fixed(7), fixed(Uniform(min=7, max=7)), fixed(None)) == (7, None, None)


def test_uniform_lengths_reach_both_ends_evenly() -> None:
    found = draw_lengths(Uniform(min=3, max=6), 8000, 0)
    assert [found.count(length) for length in (3, 4, 5, 6)] == pytest.approx([2000] * 4, rel=0.1)


@pytest.mark.parametrize("kind", [Normal, Lognormal])
def test_mean_and_spread_are_of_the_lengths_themselves(kind: type[Normal] | type[Lognormal]) -> None:
    found = draw_lengths(kind(mean=500, std=120), 20_000, 0)
    assert fmean(found) == pytest.approx(500, rel=0.02)
    assert pstdev(found) == pytest.approx(120, rel=0.05)


def test_a_lognormal_leans_to_long_ones() -> None:
    found = sorted(draw_lengths(Lognormal(mean=500, std=500), 10_001, 0))
    assert found[5000] == pytest.approx(500 / 2**0.5, rel=0.05)


def test_limits_cut_a_distribution_and_do_not_heap_it_up_at_its_ends() -> None:
    found = draw_lengths(Normal(mean=100, std=50, min=80, max=120), 8000, 0)
    assert found.count(80) < 400
    assert found.count(120) < 400


def test_the_same_seed_gives_the_same_lengths_on_every_machine() -> None:
    assert draw_lengths(Normal(mean=100, std=20), 4, 0, "prompt", "r0") == [88, 98, 87, 86]
