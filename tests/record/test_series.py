"""Bounded series."""

from hypothesis import given
from hypothesis import strategies as st

from deploytui.record.series import COARSE, FINE, Point, Series, append, merged


def filled(values: list[float]) -> Series:
    series = Series()
    for at, value in enumerate(values):
        series = append(series, Point(at, value, value, value))
    return series


@given(st.lists(st.floats(-1e9, 1e9), max_size=3000))
def test_a_series_stays_small_and_keeps_its_peaks(values: list[float]) -> None:
    series = filled(values)
    points = series.points()
    assert len(series.fine) <= FINE
    assert len(series.coarse) <= COARSE
    assert series.last == (values[-1] if values else None)
    if values:
        assert max(point.max for point in points) == max(values)
        assert min(point.min for point in points) == min(values)
        stamps = [point.at_ns for point in points]
        assert stamps == sorted(set(stamps))


def test_the_newest_points_are_kept_as_they_came() -> None:
    series = filled([float(value) for value in range(10_000)])
    assert [point.last for point in series.fine] == [float(v) for v in range(10_000 - len(series.fine), 10_000)]
    assert len(series.fine) >= FINE // 2


def test_a_single_peak_survives_ten_thousand_points() -> None:
    series = filled([1e6 if value == 17 else 0.0 for value in range(10_000)])
    assert max(point.max for point in series.points()) == 1e6
    assert len(series.points()) <= FINE + COARSE


def test_merging_keeps_an_odd_last_point() -> None:
    points = tuple(Point(at, float(at), float(at), float(at)) for at in range(5))
    assert merged(points) == (Point(1, 0.0, 1.0, 1.0), Point(3, 2.0, 3.0, 3.0), points[4])


def test_an_empty_series_has_no_newest_value() -> None:
    assert Series().last is None
    assert Series().points() == ()
