"""The points of a load: what each asks, and that each is the workload that asks for it alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deploytui.plan.points import counted, places, planned_points
from deploytui.plan.workload import workload_key
from deploytui.profile.load_schema import Burst, Closed, Constant, Gamma, Load, Poisson, Ramp
from deploytui.profile.schema import Candidate, Profile, Workload
from deploytui.record.planned import PlannedPoint, point_label


def profile(load: Load) -> Profile:
    return Profile(workload=Workload(prompt_tokens=8, load=load), candidates=(Candidate(name="a", engine="mock"),))


@pytest.mark.parametrize(
    ("load", "by", "asked", "labels"),
    [
        (Closed(concurrency=4), "concurrency", (4,), ["concurrency 4"]),
        (Closed(concurrency=(4, 1)), "concurrency", (4, 1), ["concurrency 4", "concurrency 1"]),
        (Poisson(rate=2.5), "rate", (2.5,), ["rate 2.5/s"]),
        (Gamma(rate=(1.0, 20.0)), "rate", (1, 20), ["rate 1/s", "rate 20/s"]),
        (Burst(), None, (None,), ["point 0"]),
        (Ramp(from_=1, to=2, seconds=3), None, (None,), ["point 0"]),
    ],
)
def test_a_point_says_what_it_asks(
    load: Load, by: str | None, asked: tuple[float | None, ...], labels: list[str]
) -> None:
    assert counted(load) == by
    assert places(load) == asked
    found = planned_points(profile(load))
    assert [one.label for one in found] == labels
    assert [one.point for one in found] == list(range(len(asked)))


@given(st.lists(st.integers(1, 500), min_size=1, max_size=5, unique=True))
def test_each_point_has_the_key_of_a_session_of_that_load_alone(users: list[int]) -> None:
    found = planned_points(profile(Closed(concurrency=tuple(users), think_time_s=0.5)))
    alone = [workload_key(profile(Closed(concurrency=one, think_time_s=0.5))) for one in users]
    assert [one.workload_key for one in found] == alone
    assert len(set(alone)) == len(users)


@given(st.lists(st.floats(0.1, 500), min_size=1, max_size=5, unique=True))
def test_a_rate_is_another_workload_than_the_same_rate_of_another_kind(rates: list[float]) -> None:
    steady = planned_points(profile(Constant(rate=tuple(rates))))
    random = planned_points(profile(Poisson(rate=tuple(rates))))
    assert not {one.workload_key for one in steady} & {one.workload_key for one in random}


def test_the_inputs_are_part_of_the_key() -> None:
    one = profile(Closed(concurrency=(1, 2)))
    named = replace(one, workload=replace(one.workload, prompt_tokens=None, dataset="d.jsonl"))
    first = planned_points(named, dataset_sha256="a")
    assert {row.workload_key for row in first}.isdisjoint(
        row.workload_key for row in planned_points(named, dataset_sha256="b")
    )


def test_a_load_without_a_number_has_no_words_for_it() -> None:
    assert point_label(None, None) == ""
    assert PlannedPoint(point=3).label == "point 3"
