"""What a sweep shows: which points are worth having, and where more load stops paying."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.compare.curve import CurvePoint, curve, knee, pareto_front
from deploytui.record.planned import PlannedPoint
from tests.export.parts import metrics, spread_of

figures = st.integers(-50, 50).map(float)
aims = st.lists(st.tuples(*[st.none() | figures] * 3), max_size=8)
loads = st.lists(st.integers(1, 1000), min_size=3, max_size=9, unique=True).map(sorted)


def sweep(
    concurrencies: Sequence[int], rates: Sequence[float | None], ttfts: Sequence[float] | None = None
) -> tuple[CurvePoint, ...]:
    points = [
        PlannedPoint(point=place, by="concurrency", asked=float(users), workload_key=f"key{place}")
        for place, users in enumerate(concurrencies)
    ]
    waits = ttfts or [0.1 * (place + 1) for place in range(len(concurrencies))]
    measured = {
        place: metrics(output_tok_s=rate, ttft=spread_of(100, wait), tpot=spread_of(100, 0.01))
        for place, (rate, wait) in enumerate(zip(rates, waits, strict=True))
    }
    return curve(measured, points)


def test_the_knee_is_where_the_slots_are_full() -> None:
    found = sweep([1, 2, 4, 8, 16], [100, 200, 400, 402, 403])
    assert [one.asked for one in found if one.knee] == [4]
    assert [one.label for one in found][:2] == ["concurrency 1", "concurrency 2"]
    assert [one.workload_key for one in found] == [f"key{place}" for place in range(5)]


def test_throughput_that_falls_again_bends_at_its_top() -> None:
    assert [one.asked for one in sweep([1, 4, 16, 64], [100, 390, 800, 500]) if one.knee] == [16]


@pytest.mark.parametrize(
    ("users", "rates"),
    [
        ([1, 4], [100, 110]),
        ([1, 2, 4, 8], [100, 200, 400, 800]),
        ([1, 2, 4, 8], [100, 210, 390, 800]),
        ([1, 2, 4, 8], [400, 400, 400, 400]),
        ([1, 2, 4, 8], [400, 300, 200, 100]),
        ([1, 2, 4, 8], [100, None, None, 105]),
    ],
)
def test_no_knee_is_told_where_no_bend_is_seen(users: list[int], rates: list[float | None]) -> None:
    assert not any(one.knee for one in sweep(users, rates))


def test_points_stand_by_load_whatever_the_order_they_were_measured_in() -> None:
    assert [one.asked for one in sweep([16, 1, 4], [403, 100, 400])] == [1, 4, 16]


def test_a_point_with_more_throughput_and_less_latency_takes_the_other_off_the_front() -> None:
    found = sweep([1, 2, 4], [100, 90, 300], [0.1, 0.2, 0.3])
    assert [one.asked for one in found if one.pareto] == [1, 4]


def test_tokens_of_one_reader_are_those_that_come_at_his_screen() -> None:
    (one,) = curve({0: metrics(tpot=spread_of(100, 0.02))}, ())
    assert one.tok_s_per_user == 50
    assert one.asked is None
    assert one.label == "point 0"
    assert curve({0: metrics(tpot=spread_of(0, 0))}, ())[0].tok_s_per_user is None


@given(aims)
def test_the_front_is_what_nothing_dominates(points: list[tuple[float | None, ...]]) -> None:
    front = pareto_front(points)
    known = [place for place, _ in enumerate(points) if _is_whole(points, place)]
    assert front <= set(known)
    for place in known:
        beaten = any(_beats(points, other, place) for other in known)
        assert (place in front) is not beaten


@given(aims)
def test_a_missing_value_never_dominates(points: list[tuple[float | None, ...]]) -> None:
    whole = [point for place, point in enumerate(points) if _is_whole(points, place)]
    if whole:
        front = {points[place] for place in pareto_front(points)}
        assert front == {whole[place] for place in pareto_front(whole)}


@given(loads, st.data())
def test_units_and_scales_do_not_move_the_knee(xs: list[int], data: st.DataObject) -> None:
    ys = [float(data.draw(st.integers(0, 1000))) for _ in xs]
    found = knee([float(x) for x in xs], ys)
    assert knee([8.0 * x for x in xs], [0.25 * y for y in ys]) == found
    assert found is None or 0 < found < len(xs) - 1


@given(loads, st.integers(1, 9))
def test_a_straight_line_has_no_knee(xs: list[int], slope: int) -> None:
    assert knee([float(x) for x in xs], [float(slope * x) for x in xs]) is None


@given(st.integers(1, 6), st.integers(2, 6))
def test_a_plateau_begins_at_its_knee(rising: int, flat: int) -> None:
    xs = [2.0**place for place in range(rising + flat)]
    ys = [min(x, 2.0**rising) for x in xs]
    found = knee(xs, ys)
    assert found == (rising if flat > 1 else None)


def _is_whole(points: list[tuple[float | None, ...]], place: int) -> bool:
    asked = [aim for aim in range(3) if any(point[aim] is not None for point in points)]
    return bool(asked) and all(points[place][aim] is not None for aim in asked)


def _beats(points: list[tuple[float | None, ...]], one: int, other: int) -> bool:
    pairs = [(a, b) for a, b in zip(points[one], points[other], strict=True) if a is not None and b is not None]
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)
