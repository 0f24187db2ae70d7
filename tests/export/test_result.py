"""The result JSON: its skeleton always stands, what was not measured is null and named."""

from typing import Any

import pytest

from deploytui.definitions import TEXTS
from deploytui.export.result import json_bytes, result
from deploytui.record.events import Measured, Planned, Summed
from deploytui.record.facts import ColdStart, MemoryUse
from deploytui.record.fold import fold, fold_all
from deploytui.record.planned import PlannedCandidate
from deploytui.record.state import SessionState
from tests.export.parts import WITH_MOCK, metrics, profile, spread_of
from tests.export.sessions import started, whole_state
from tests.export.strict import strict

SKELETON: dict[str, Any] = {
    "schema": "",
    "session": {},
    "environment": {"host": {}, "gpus": [], "driver": None, "cuda": None},
    "workload": {"key": "", "draw": "", "warmup_requests": 0, "warmup_s": 0},
    "definitions": {},
    "candidates": [],
    "decision": {
        "decision": "",
        "accepted": [],
        "winner": "",
        "reasons": [],
        "not_covered": [],
        "fallback": "",
    },
}


TIMING = {"n": 0, "mean": 0, "std": 0, "min": 0, "p50": 0, "p90": 0, "p95": 0, "p99": None, "max": 0}


SHARE = {"value": 0, "n": 0, "low": 0, "high": 0}


CANDIDATE: dict[str, Any] = {
    "name": "",
    "engine": {"name": "", "version": ""},
    "model": {},
    "artifact": {"format": "", "bytes": 0, "sha256": {}},
    "runtime": {"argv": []},
    "status": "",
    "run": "",
    "simulated": False,
    "oom": False,
    "failure": None,
    "kv_cache": {},
    "cold_start": {"checksum_s": 0, "prepare_s": None, "launch_s": 0, "load_s": 0, "first_token_s": 0},
    "metrics": {
        "ttft_ms": TIMING,
        "tpot_ms": TIMING,
        "icl_ms": TIMING,
        "e2e_ms": TIMING,
        "output_tok_s": 0,
        "steady_output_tok_s": None,
        "request_s": 0,
        "success_rate": SHARE,
        "quality": SHARE,
        "format_pass_rate": SHARE,
        "load_gpu_gib": None,
        "peak_gpu_gib": None,
        "peak_allocated_gib": None,
        "peak_reserved_gib": None,
        "peak_host_gib": 0,
    },
    "missing": [],
    "tool_error": {},
    "verdict": {"decision": "", "reasons": []},
}


def lacking(data: Any, skeleton: Any, where: str = "") -> list[str]:
    """Paths of the skeleton that the data has not."""
    if isinstance(skeleton, list):
        return [] if isinstance(data, list) else [where]
    if not isinstance(skeleton, dict):
        return []
    if not isinstance(data, dict):
        return [where]
    found = [f"{where}.{key}" for key in skeleton if key not in data]
    return found + [path for key, part in skeleton.items() if key in data for path in lacking(data[key], part, key)]


def states() -> list[SessionState]:
    """From nothing at all to a whole session."""
    planned = Planned(
        at_ns=1,
        candidates=(PlannedCandidate(name="fast", engine="llamacpp", artifact=""),),
        steps=(),
        workload_key="w",
    )
    return [
        SessionState(),
        fold_all([started()]),
        fold_all([started(), planned]),
        whole_state(),
        whole_state(mock=True),
        whole_state(gpu=True),
    ]


@pytest.mark.parametrize("state", states())
def test_the_skeleton_stands_whatever_happened(state: SessionState) -> None:
    data = strict(json_bytes(result(profile(WITH_MOCK), state)))
    assert data["schema"] == "deploytui.result/1"
    assert lacking(data, SKELETON) == []
    assert data["candidates"]
    assert [lacking(row, CANDIDATE) for row in data["candidates"]] == [[]] * len(data["candidates"])


@pytest.mark.parametrize("state", states())
def test_every_null_number_is_named_with_a_reason(state: SessionState) -> None:
    for row in result(profile(WITH_MOCK), state)["candidates"]:
        nulls = {name for name, value in row["metrics"].items() if value is None}
        nulls |= {name for name, value in row["metrics"].items() if isinstance(value, dict) and value.get("n") == 0}
        assert nulls <= set(row["missing"])
        assert row["missing"] == list(row["missing_reasons"])
        assert all(row["missing_reasons"].values())


def row_of(state: SessionState, name: str) -> dict[str, Any]:
    rows = result(profile(WITH_MOCK), state)["candidates"]
    return next(row for row in rows if row["name"] == name)


def test_a_measured_candidate_has_its_numbers_in_ms_and_gib() -> None:
    row = row_of(whole_state(), "fast")
    numbers = row["metrics"]
    assert (row["status"], row["run"], row["verdict"]["decision"]) == ("load_success", "ok", "accept")
    assert numbers["ttft_ms"]["p95"] == pytest.approx(170)
    assert numbers["ttft_ms"]["n"] == 24
    assert isinstance(numbers["ttft_ms"]["n"], int)
    assert numbers["peak_host_gib"] == pytest.approx(1 / 3)
    assert numbers["intervals_ms"] == {"ttft_ms.p95": [150.0, 190.0]}
    assert numbers["quality"]["value"] == 0.8125
    assert numbers["quality"]["tasks"][0]["task"] == "builtin:basic"
    assert row["artifact"]["bytes"] == 98_362_432
    assert isinstance(row["artifact"]["bytes"], int)
    assert row["cold_start"]["total_s"] == pytest.approx(0.2 + 1 / 3 + 0.05)
    assert row["verdict"]["held"][0]["limit"] == 500.0
    assert [repeat["repeat"] for repeat in row["repeats"]] == [0, 1, 2]


def test_a_percentile_of_few_samples_is_null_with_how_many_it_needs() -> None:
    row = row_of(whole_state(), "fast")
    assert row["metrics"]["ttft_ms"]["p99"] is None
    assert row["missing_reasons"]["ttft_ms.p99"] == "insufficient_samples: 24 of 100"


def test_gpu_memory_without_a_gpu_is_null_and_never_the_hosts() -> None:
    row = row_of(whole_state(), "fast")
    assert row["metrics"]["peak_gpu_gib"] is None
    assert row["missing_reasons"]["peak_gpu_gib"] == "no GPU: NVML Shared Library Not Found"
    assert row_of(whole_state(gpu=True), "fast")["metrics"]["peak_gpu_gib"] == 2.0


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("absent", "unsupported", "unsupported: vllm is not installed."),
        ("broken", "load_failed", "load_failed: The file is cut short."),
        ("dropped", "cancelled", "cancelled"),
    ],
)
def test_a_candidate_without_a_run_is_all_missing_with_its_cause(name: str, status: str, reason: str) -> None:
    row = row_of(whole_state(), name)
    assert (row["status"], row["run"]) == (status, None)
    assert row["metrics"]["ttft_ms"]["p50"] is None
    assert row["metrics"]["success_rate"] == {"value": None, "n": 0, "low": None, "high": None}
    assert {"ttft_ms", "output_tok_s", "quality", "peak_host_gib", "cold_start.load_s"} <= set(row["missing"])
    assert set(row["missing_reasons"].values()) == {reason}


def test_a_failure_keeps_the_engines_own_words() -> None:
    failure = row_of(whole_state(), "broken")["failure"]
    assert failure["kind"] == "corrupt"
    assert failure["why"] == "tensor data out of bounds \x1b[31m"


def test_simulated_numbers_are_stamped_at_the_top_and_at_their_candidate() -> None:
    data = result(profile(WITH_MOCK), whole_state(mock=True))
    assert (data["simulated"], data["stamp"]) == (True, "SIMULATED")
    assert {row["name"]: row["simulated"] for row in data["candidates"]}["pretend"] is True
    assert not row_of(whole_state(), "fast")["simulated"]
    assert result(profile(), whole_state())["stamp"] is None


def test_chunks_of_one_token_have_an_itl_and_others_have_none() -> None:
    one = row_of(whole_state(), "fast")["metrics"]
    assert one["itl_ms"] == one["icl_ms"]
    state = fold(whole_state(), Measured(at_ns=50, candidate="fast", metrics=metrics(tokens_per_chunk=2.5)))
    row = row_of(state, "fast")
    assert row["metrics"]["itl_ms"]["n"] == 0
    assert row["missing_reasons"]["itl_ms"] == "a chunk is not one token"


def test_a_run_without_one_success_says_so() -> None:
    none = metrics(
        8,
        ok=0,
        ttft=spread_of(0, 0),
        tpot=spread_of(0, 0),
        e2e=spread_of(0, 0),
        errors={"http_500": 8},
    )
    state = fold(whole_state(), Measured(at_ns=50, candidate="fast", metrics=none))
    row = row_of(state, "fast")
    assert row["missing_reasons"]["ttft_ms"] == "no request succeeded"
    assert row["metrics"]["errors"] == {"http_500": 8}


def test_a_number_that_is_not_finite_is_null() -> None:
    odd = metrics(output_tok_s=float("inf"), request_s=float("nan"))
    state = fold(whole_state(), Measured(at_ns=50, candidate="fast", metrics=odd))
    row = row_of(state, "fast")
    assert row["metrics"]["output_tok_s"] is None
    assert {"output_tok_s", "request_s"} <= set(row["missing"])


def test_what_is_still_to_come_is_not_called_failed() -> None:
    state = fold_all(
        [
            started(),
            Planned(
                at_ns=1,
                candidates=(PlannedCandidate(name="fast", engine="llamacpp", artifact=""),),
                steps=(),
                workload_key="w",
            ),
        ]
    )
    assert row_of(state, "fast")["missing_reasons"]["ttft_ms"] == "not measured yet"
    data = result(profile(), state)
    assert (data["session"]["finished"], data["session"]["exit_status"]) == (False, None)
    assert data["session"]["left_out"] == ["absent", "broken", "dropped"]
    assert data["decision"]["decision"] is None


def test_session_and_workload_tell_when_where_and_what() -> None:
    data = result(profile(), whole_state(), unreadable_lines=2)
    session, workload = data["session"], data["workload"]
    assert session["started"] == "2025-01-01T00:00:00.250+00:00"
    assert (session["hostname"], session["tool_version"], session["exit_status"]) == ("node-7", "0.1.0", 0)
    assert session["unreadable_lines"] == 2
    assert (workload["key"], workload["draw"], workload["warmup_s"]) == ("w" * 16, "d" * 64, 1.9)
    assert workload["asked"]["load"] == {"kind": "closed", "concurrency": 2, "think_time_s": 0.0}
    assert data["definitions"] == TEXTS
    assert data["environment"]["label"] == "for this CPU host only"


def test_values_of_the_environment_asked_for_stay_out_of_the_result() -> None:
    data = json_bytes(result(profile(), whole_state()))
    assert b"hunter2" not in data
    assert b'"HF_TOKEN"' in data


def test_a_part_of_the_start_that_was_not_there_is_named() -> None:
    reasons = row_of(whole_state(), "fast")["missing_reasons"]
    assert reasons["cold_start.prepare_s"] == "nothing was prepared"
    state = fold(
        whole_state(), Summed(at_ns=50, candidate="fast", memory=MemoryUse(), cold_start=ColdStart(launch_s=1.0))
    )
    assert row_of(state, "fast")["missing_reasons"]["cold_start.total_s"] == "a part of it was not measured"


def test_a_candidate_the_profile_does_not_know_is_exported_too() -> None:
    state = whole_state(mock=True)
    assert [row["name"] for row in result(profile(), state)["candidates"]][-1] == "pretend"
