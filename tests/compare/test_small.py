"""Plain records side by side."""

import json
from typing import Any

import pytest

from deploytui.compare.small import canonical, compare_deployment_records

KEY = (("output_tokens", 128), ("requests", 200))


def record(status: str = "load_success", key: Any = KEY) -> dict[str, Any]:
    return {"name": "a", "status": status, "workload_key": key}


def test_statuses_are_counted_and_records_kept_in_order() -> None:
    rows = [record(), record("unsupported"), record("load_failed"), record(), record("invalid_config")]
    found = compare_deployment_records(rows)
    assert found == {
        "workload_consistent": True,
        "load_success": 2,
        "unsupported": 1,
        "load_failed": 1,
        "records": rows,
    }


def test_two_workloads_are_not_consistent() -> None:
    other = (("output_tokens", 256), ("requests", 200))
    assert not compare_deployment_records([record(), record(key=other)])["workload_consistent"]


def test_a_record_without_a_key_counts_as_one_more_key() -> None:
    bare = {"name": "b", "status": "load_success"}
    assert not compare_deployment_records([record(), bare])["workload_consistent"]
    assert not compare_deployment_records([record(), record(key=None)])["workload_consistent"]


def test_records_that_all_lack_a_key_are_consistent() -> None:
    bare = {"name": "b", "status": "load_success"}
    assert compare_deployment_records([bare, bare])["workload_consistent"]


def test_no_records_are_consistent_and_hold_nothing() -> None:
    found = compare_deployment_records([])
    assert (found["workload_consistent"], found["load_success"], found["records"]) == (True, 0, [])


def test_a_key_that_went_through_json_is_still_the_same_key() -> None:
    back = json.loads(json.dumps(record()))
    assert compare_deployment_records([record(), back])["workload_consistent"]


def test_any_iterable_of_records_will_do() -> None:
    assert compare_deployment_records(record() for _ in range(3))["load_success"] == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1, 2], (1, 2)),
        ({1, 2, 3}, {3, 2, 1}),
        (1, 1.0),
        ({"a": {"x": [1]}}, {"a": {"x": (1.0,)}}),
    ],
)
def test_equal_values_have_equal_canonical_text(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(("one", "other"), [(True, 1), ("1", 1), (None, "null"), ([1, 2], [2, 1])])
def test_different_values_have_different_canonical_text(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)
