"""How sure a figure is: intervals of quantiles, means and repeats, and how much more measuring would settle a limit."""

from collections.abc import Sequence
from math import ceil, isfinite, sqrt
from statistics import NormalDist, stdev

from deploytui.record.quantile import LEVEL, order_interval

__all__ = [
    "LEVEL",
    "Interval",
    "contains",
    "mean_interval",
    "order_interval",
    "overlap",
    "repeat_interval",
    "requests_to_settle",
    "student_t",
    "wider",
]

Interval = tuple[float, float]
"""Low and high end, 95 % unless said otherwise."""

# Two-sided 95 % points of Student's t for 1..30 degrees of freedom; source: Fisher and Yates, table III.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_Z95 = NormalDist().inv_cdf((1 + LEVEL) / 2)


def student_t(freedom: int) -> float:
    """The two-sided 95 % point of Student's t; beyond 30 degrees the Cornish-Fisher expansion, right to 0.001.

    Source: Abramowitz and Stegun (1964), 26.7.5.
    """
    if freedom < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = _Z95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def repeat_interval(values: Sequence[float], around: float) -> Interval | None:
    """The 95 % interval that the spread between repeats gives a figure pooled to `around`; None under 2 repeats.

    Student's t on the repeats' own figures (Student, 1908): requests of one repeat are correlated, repeats much less.
    """
    if len(values) < 2:
        return None
    half = student_t(len(values) - 1) * stdev(values) / sqrt(len(values))
    return around - half, around + half


def mean_interval(mean: float, std: float | None, n: int) -> Interval | None:
    """The 95 % interval of a mean from its own sample; None under 2 values."""
    if std is None or n < 2:
        return None
    half = student_t(n - 1) * std / sqrt(n)
    return mean - half, mean + half


def wider(*intervals: Interval | None) -> Interval | None:
    """The widest interval there is; None when there is none."""
    known = [interval for interval in intervals if interval is not None]
    return max(known, key=lambda interval: interval[1] - interval[0], default=None)


def contains(interval: Interval | None, limit: float) -> bool:
    """Whether a limit lies within, so that the interval can't tell on which side the figure is."""
    return interval is not None and interval[0] <= limit <= interval[1] and interval[0] < interval[1]


def overlap(one: Interval, other: Interval) -> bool:
    """Whether two intervals share a value."""
    return one[0] <= other[1] and other[0] <= one[1]


def requests_to_settle(value: float, interval: Interval, limit: float, n: int) -> int | None:
    """About how many samples in all bring the interval's near end off the limit, as width shrinks with √n; None when
    the value stands at the limit and no number does, or none is needed.
    """
    distance = abs(limit - value)
    half = interval[1] - value if limit >= value else value - interval[0]
    if distance == 0 or half <= distance or not isfinite(half):
        return None
    return ceil(n * (half / distance) ** 2)
