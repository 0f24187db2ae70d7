"""How far a sample quantile may lie from the true one: the order-statistic interval."""

from collections.abc import Sequence
from math import exp, lgamma, log, sqrt

LEVEL = 0.95
"""Confidence of all intervals of this package."""


def _mass(n: int, q: float, k: int) -> float:
    """The binomial probability of exactly k of n."""
    ways = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
    return exp(ways + k * log(q) + (n - k) * log(1 - q))


def interval_ranks(n: int, q: float, level: float = LEVEL) -> tuple[int, int]:
    """The ranks (1..n) whose values enclose the q-quantile (0 < q < 1) with at least `level`, each side alike.

    Source: the distribution-free interval of David and Nagaraja, Order Statistics (2003), section 7.1. Where the sample
    is too small for such a rank, the smallest or largest value stands in and the coverage is below `level`.
    """
    tail = (1 - level) / 2
    reach = 10 * sqrt(n * q * (1 - q)) + 10
    first, last = max(0, int(n * q - reach)), min(n, int(n * q + reach) + 1)
    low, below = first, _mass(n, q, first)
    while low < last and below <= tail:
        low += 1
        below += _mass(n, q, low)
    high, above = last, _mass(n, q, last)
    while high > first and above <= tail:
        high -= 1
        above += _mass(n, q, high)
    return max(low, 1), min(high + 1, n)


def order_interval(ordered: Sequence[float], q: float) -> tuple[float, float] | None:
    """The 95 % order-statistic interval of the q-th percentile (0..100) of ascending values; None of nothing."""
    if not ordered:
        return None
    low, high = interval_ranks(len(ordered), q / 100)
    return ordered[low - 1], ordered[high - 1]
