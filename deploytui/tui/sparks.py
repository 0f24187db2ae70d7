"""Series as bars: one row in the grid, several in a plot."""

from collections.abc import Sequence
from math import ceil

from deploytui.record.series import Series

BARS = "▁▂▃▄▅▆▇"
"""Without the full block, so that bars of two rows never touch."""
EIGHTHS = " ▁▂▃▄▅▆▇█"


def sparkline(series: Series, width: int, *, per_bar: int = 1, ceiling: float | None = None) -> str:
    """The newest `width` bars of `per_bar` points each, from 0 to the ceiling or else the largest; '' without points.

    A bar shows the largest value of its points, so that a peak is never thinned away.
    """
    tops = bar_tops(series, width, per_bar)
    return "".join(bar(top, ceiling or max(tops)) for top in tops)


def bar_tops(series: Series, width: int, per_bar: int) -> list[float]:
    """The largest value of each of the newest `width` bars."""
    if width <= 0:
        return []
    values = [point.max for point in series.points()[-width * per_bar :]]
    return [max(values[max(end - per_bar, 0) : end]) for end in range(len(values), 0, -per_bar)][::-1]


def bar(value: float, ceiling: float) -> str:
    """One bar; the lowest for nothing."""
    if ceiling <= 0:
        return BARS[0]
    return BARS[min(max(round(value / ceiling * (len(BARS) - 1)), 0), len(BARS) - 1)]


def lying(value: float, ceiling: float, width: int) -> str:
    """One bar from left to right, `width` cells at the ceiling; '' for nothing."""
    return BARS[-1] * min(max(round(value / ceiling * width), 0), width) if ceiling > 0 else ""


def plot(series: Series, width: int, height: int) -> list[str]:
    """The whole series in `height` rows, the upper first, from 0 to its largest value; [] without points."""
    count = len(series.points())
    if not count or width <= 0:
        return []
    tops = bar_tops(series, width, ceil(count / width))
    return [_row(tops, max(tops), row, height) for row in range(height - 1, -1, -1)]


def _row(tops: Sequence[float], ceiling: float, row: int, height: int) -> str:
    """The row `row` from below."""
    eighths = (round(top / ceiling * height * 8) if ceiling > 0 else 0 for top in tops)
    return "".join(EIGHTHS[min(max(level - row * 8, 1 if row == 0 else 0), 8)] for level in eighths)
