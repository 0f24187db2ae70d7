"""The formulas behind every number."""

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploytui.definitions import (
    SAMPLES_NEEDED,
    TEXTS,
    percentile,
    requests_needed,
    samples_needed,
    tpot,
    ttft,
    wilson,
)


def test_ttft_is_from_send_to_the_first_token() -> None:
    assert ttft(1_000_000_000, 1_210_000_000) == pytest.approx(0.21)


def test_without_a_token_there_is_no_ttft() -> None:
    assert ttft(1, None) is None


@pytest.mark.parametrize(("tokens", "expected"), [(None, None), (0, None), (1, None), (2, 1.0), (11, 0.1)])
def test_tpot_needs_two_tokens(tokens: int | None, expected: float | None) -> None:
    found = tpot(0, 1_000_000_000, tokens)
    assert found is None if expected is None else found == pytest.approx(expected)


def test_tpot_counts_tokens_not_chunks() -> None:
    """Five chunks of four tokens, 50 ms apart: 200 ms over 19 tokens."""
    assert tpot(0, 200_000_000, 20) == pytest.approx(0.2 / 19)


def test_tpot_without_stamps_is_missing() -> None:
    assert tpot(None, 5, 10) is None
    assert tpot(5, None, 10) is None


@pytest.mark.parametrize(
    ("q", "expected"), [(0, 15.0), (5, 16.0), (30, 23.0), (40, 29.0), (50, 35.0), (95, 48.0), (100, 50.0)]
)
def test_percentile_interpolates_as_numpy_does(q: float, expected: float) -> None:
    """numpy.percentile([15, 20, 35, 40, 50], q) gives these."""
    assert percentile([15.0, 20.0, 35.0, 40.0, 50.0], q) == pytest.approx(expected)


def test_percentile_of_nothing_is_missing() -> None:
    assert percentile([], 50) is None


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=200), st.integers(1, 99))
def test_percentile_is_the_inclusive_quantile(values: list[float], q: int) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    assert percentile(sorted(values), q) == pytest.approx(cuts[q - 1], abs=1e-6)


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_percentile_lies_within_its_values(values: list[float], q: float) -> None:
    found = percentile(sorted(values), q)
    assert found is not None
    assert min(values) - 1e-6 <= found <= max(values) + 1e-6


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe (1998), Statistics in Medicine 17, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits, n) == pytest.approx((low, high), abs=5e-5)


def test_a_share_of_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None


@settings(deadline=None)
@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_encloses_the_share_within_0_and_1(case: tuple[int, int]) -> None:
    hits, n = case
    interval = wilson(hits, n)
    assert interval is not None
    low, high = interval
    assert 0 <= low <= hits / n + 1e-12
    assert hits / n - 1e-12 <= high <= 1


def test_sample_sizes_of_percentiles_are_those_documented() -> None:
    assert SAMPLES_NEEDED == {"p99": 100, "p95": 20}
    assert samples_needed("mean") == 1
    assert requests_needed("p95", 3) == 7
    assert requests_needed("p99", 3) == 34
    assert requests_needed("p50", 0) == 1


@pytest.mark.parametrize("word", ["sent", "ttft", "tpot", "icl", "e2e", "output_tok_s", "goodput", "success_rate"])
def test_every_word_on_the_screen_has_its_text(word: str) -> None:
    assert len(TEXTS[word]) > 10
