"""Series as a row of bars."""

from deploytui.record.series import Series

BARS = "▁▂▃▄▅▆▇█"


def sparkline(series: Series, width: int, *, per_bar: int = 1, ceiling: float | None = None) -> str:
    """The newest `width` bars of `per_bar` points each, from 0 to the ceiling or else the largest; '' without points.

    A bar shows the largest value of its points, so that a peak is never thinned away.
    """
    values = [point.max for point in series.points()[-width * per_bar :]]
    if not values or width <= 0:
        return ""
    tops = [max(values[max(end - per_bar, 0) : end]) for end in range(len(values), 0, -per_bar)][::-1]
    return "".join(bar(top, ceiling or max(tops)) for top in tops)


def bar(value: float, ceiling: float) -> str:
    """One bar; the lowest for nothing."""
    if ceiling <= 0:
        return BARS[0]
    return BARS[min(max(int(value / ceiling * len(BARS)), 0), len(BARS) - 1)]
