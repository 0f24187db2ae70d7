"""The small API: plain values in, plain dicts out."""

import json
import math
from typing import Any

import pytest

from deploytui import build_deployment_case, compare_deployment_records, make_deployment_decision

WORKLOAD = {"requests": 200, "concurrency": 16, "prompt_tokens": 1024}


def case(**change: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "model_id": "Qwen/Qwen2.5-7B-Instruct",
        "backend": "vllm",
        "model_format": "safetensors",
        "hardware": "1x H100-80G",
        "workload": WORKLOAD,
    }
    return build_deployment_case(**{**fields, **change})


def record(name: str = "a", *, quality: Any = 0.9, ttft_ms: Any = 100.0, **other: Any) -> dict[str, Any]:
    fields = {"name": name, "status": "load_success", "quality": quality, "ttft_ms": ttft_ms, "workload_key": "k"}
    return {**fields, **other}


def decide(*records: dict[str, Any], min_quality: float = 0.8, max_ttft_ms: float = 500) -> dict[str, Any]:
    return make_deployment_decision(compare_deployment_records(records), min_quality, max_ttft_ms)


def test_a_case_repeats_what_was_asked_and_is_ready() -> None:
    found = case()
    assert found["status"] == "ready"
    assert found["model_id"] == "Qwen/Qwen2.5-7B-Instruct"
    assert (found["backend"], found["model_format"], found["hardware"]) == ("vllm", "safetensors", "1x H100-80G")
    assert found["workload"] == WORKLOAD


def test_the_key_of_a_flat_workload_is_the_tuple_of_its_sorted_items() -> None:
    assert case()["workload_key"] == (("concurrency", 16), ("prompt_tokens", 1024), ("requests", 200))


def test_the_order_of_a_workload_does_not_matter() -> None:
    turned = dict(reversed(list(WORKLOAD.items())))
    assert case(workload=turned)["workload_key"] == case()["workload_key"]


def test_a_nested_workload_has_canonical_json_as_its_key() -> None:
    nested = {"load": {"kind": "closed", "concurrency": [1, 4]}, "requests": 5}
    key = case(workload=nested)["workload_key"]
    assert key == '{"load":{"concurrency":[1,4],"kind":"closed"},"requests":5}'
    assert hash(key)
    assert json.loads(key) == nested


@pytest.mark.parametrize("workload", [{1: "a", "b": 2}, {"a": {1, 2}}, {"a": object}, {"a": None}, {"a": (1, 2)}])
def test_every_workload_gets_a_key_that_can_be_compared(workload: dict[Any, Any]) -> None:
    key = case(workload=workload)["workload_key"]
    assert hash(key) == hash(case(workload=dict(workload))["workload_key"])


@pytest.mark.parametrize("field", ["model_id", "backend", "model_format", "hardware"])
@pytest.mark.parametrize("value", ["", "  ", None, 7, b"vllm", ["vllm"]])
def test_a_text_that_is_empty_or_none_is_an_invalid_config(field: str, value: Any) -> None:
    assert case(**{field: value}) == {"status": "invalid_config"}


@pytest.mark.parametrize("workload", [{}, None, [], "closed", [("requests", 5)], 3])
def test_a_workload_that_is_empty_or_no_dict_is_an_invalid_config(workload: Any) -> None:
    assert case(workload=workload) == {"status": "invalid_config"}


def test_all_that_meet_both_limits_are_accepted() -> None:
    found = decide(record("a"), record("b", quality=0.7), record("c", ttft_ms=900), record("d"))
    assert found == {"decision": "accept", "accepted": ["a", "d"]}


def test_limits_are_inclusive() -> None:
    assert decide(record(quality=0.8, ttft_ms=500))["accepted"] == ["a"]
    assert decide(record(quality=0.7999))["decision"] == "reject"
    assert decide(record(ttft_ms=500.001))["decision"] == "reject"


def test_whole_numbers_are_measurements_too() -> None:
    assert decide(record(quality=1, ttft_ms=0))["decision"] == "accept"


def test_none_that_meets_both_limits_rejects() -> None:
    found = decide(record(quality=0.1), record(ttft_ms=9000))
    assert found["decision"] == "reject"
    assert found["reason"] != "no_comparable_candidate"
    assert "accepted" not in found


@pytest.mark.parametrize("field", ["quality", "ttft_ms"])
@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, True, False, "0.9", [0.9]])
def test_what_is_no_finite_number_is_a_missing_measurement(field: str, value: Any) -> None:
    found = decide(record("good"), record("bad", **{field: value}))
    assert (found["decision"], found["reason"]) == ("tune", "missing_measurements")
    assert found["missing"] == ["bad"]


@pytest.mark.parametrize("field", ["quality", "ttft_ms"])
def test_an_absent_measurement_is_missing(field: str) -> None:
    row = record()
    del row[field]
    assert decide(row)["reason"] == "missing_measurements"


def test_evidence_comes_before_the_limits() -> None:
    assert decide(record("bad", quality=0.0), record("open", quality=None))["decision"] == "tune"


def test_a_record_that_did_not_load_needs_no_measurements() -> None:
    lost = {"name": "b", "status": "load_failed", "workload_key": "k"}
    assert decide(record("a"), lost)["accepted"] == ["a"]


def test_unlike_workloads_reject_before_evidence_is_looked_at() -> None:
    found = decide(record("a", quality=None), record("b", workload_key="other"))
    assert found == {"decision": "reject", "reason": "no_comparable_candidate"}


@pytest.mark.parametrize("status", ["unsupported", "load_failed", "invalid_config", "ready", None])
def test_nothing_loaded_rejects(status: str | None) -> None:
    assert decide(record(status=status)) == {"decision": "reject", "reason": "no_comparable_candidate"}


def test_no_records_reject() -> None:
    assert decide() == {"decision": "reject", "reason": "no_comparable_candidate"}


def test_a_record_without_a_name_goes_by_its_model() -> None:
    row = record(model_id="org/model")
    del row["name"]
    assert decide(row)["accepted"] == ["org/model"]


def test_a_record_without_name_and_model_goes_by_its_place() -> None:
    row = record()
    del row["name"]
    assert decide(row)["accepted"] == ["record 0"]


@pytest.mark.parametrize("limits", [(math.nan, 500.0), (0.8, math.nan)])
def test_a_limit_that_is_no_number_accepts_nothing(limits: tuple[float, float]) -> None:
    assert decide(record(), min_quality=limits[0], max_ttft_ms=limits[1])["decision"] == "reject"


def test_case_to_decision_in_three_calls() -> None:
    good = {**case(), "name": "a", "status": "load_success", "quality": 0.9, "ttft_ms": 182.0}
    slow = {**case(backend="sglang"), "name": "b", "status": "load_success", "quality": 0.9, "ttft_ms": 800.0}
    assert decide(good, slow) == {"decision": "accept", "accepted": ["a"]}


def test_an_invalid_case_among_good_ones_makes_the_workloads_unlike() -> None:
    """A case without a key counts as one more key, so it has to be taken out before comparing."""
    good = {**case(), "status": "load_success", "quality": 0.9, "ttft_ms": 182.0}
    assert decide(good, case(backend=""))["reason"] == "no_comparable_candidate"


def test_the_records_are_not_changed() -> None:
    rows = [record("a"), record("b", quality=None)]
    before = json.dumps(rows)
    decide(*rows)
    assert json.dumps(rows) == before
