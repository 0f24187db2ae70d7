"""When two workloads are the same one."""

import json
from typing import Any

import pytest

from deploytui.plan.workload import draw, workload_identity, workload_key
from deploytui.profile.load_schema import Closed, Normal, Poisson, TraceReplay, Uniform
from deploytui.profile.schema import Sampling, SharedPrefix
from tests.plan.cases import BF16, profile


@pytest.mark.parametrize("same", [{"seed": 7}, {"repeats": 5}, {}])
def test_seed_and_repeats_do_not_make_another_workload(same: dict[str, Any]) -> None:
    assert workload_key(profile(**same)) == workload_key(profile())


@pytest.mark.parametrize(
    "other",
    [
        {"prompt_tokens": 65},
        {"output_tokens": 64},
        {"requests": 21},
        {"warmup_requests": 3},
        {"load": Closed(concurrency=4)},
        {"load": Closed(concurrency=2, think_time_s=1.0)},
        {"load": Poisson(rate=2.0)},
        {"endpoint": "completions"},
        {"sampling": Sampling(temperature=0.7)},
        {"prompt_tokens": None, "dataset": "x.jsonl"},
        {"prompt_tokens": Uniform(min=64, max=64)},
        {"output_tokens": Normal(mean=64, std=2)},
        {"shared_prefix": SharedPrefix(ratio=0.5)},
        {"turns": 2},
        {"headers": {"x-tenant": "a"}},
        {"body": {"top_logprobs": 3}},
        {"max_seconds": 60.0},
        {"max_error_rate": 0.0},
        {"load": TraceReplay(path="t")},
    ],
)
def test_all_that_changes_the_load_makes_another_workload(other: dict[str, Any]) -> None:
    assert workload_key(profile(**other)) != workload_key(profile())


def test_a_workload_saved_before_there_were_more_keys_still_is_the_same() -> None:
    assert workload_key(profile()) == "58558629b4a1c32b"
    assert workload_key(profile(load=Closed(concurrency=(1, 2)), decide_at=2)) == "470c0532d53f658b"


def test_a_point_of_a_sweep_is_the_workload_of_that_load_alone() -> None:
    swept = profile(load=Poisson(rate=(1.0, 2.0)), decide_at=1.0)
    alone = [workload_key(profile(load=Poisson(rate=rate))) for rate in (1.0, 2.0)]
    assert [workload_key(swept, point=point) for point in (0, 1)] == alone
    assert workload_key(profile(), point=0) == workload_key(profile())


def test_a_trace_is_known_by_its_bytes_where_they_are_known() -> None:
    here, there = (profile(load=TraceReplay(path=path)) for path in ("a.jsonl", "b.jsonl"))
    assert workload_key(here) != workload_key(there)
    assert workload_key(here, trace_sha256="abc") == workload_key(there, trace_sha256="abc")
    assert workload_key(here, trace_sha256="abc") != workload_key(here, trace_sha256="def")
    faster = profile(load=TraceReplay(path="a.jsonl", speed=2.0))
    assert workload_key(faster, trace_sha256="abc") != workload_key(here, trace_sha256="abc")


def test_header_names_are_the_same_in_any_case() -> None:
    assert workload_key(profile(headers={"X-A": "1"})) == workload_key(profile(headers={"x-a": "1"}))


def test_candidates_do_not_change_the_workload() -> None:
    assert workload_key(profile(BF16)) == workload_key(profile())


def test_a_data_set_is_known_by_its_bytes_where_they_are_known() -> None:
    here, there = (profile(prompt_tokens=None, dataset=path) for path in ("a.jsonl", "b.jsonl"))
    assert workload_key(here) != workload_key(there)
    assert workload_key(here, "abc") == workload_key(there, "abc") != workload_key(there, "def")


def test_the_identity_can_be_written_as_json_and_the_key_is_short() -> None:
    identity = workload_identity(profile(load=Closed(concurrency=(1, 2)), decide_at=2))
    assert json.loads(json.dumps(identity))["load"] == {"kind": "closed", "concurrency": [1, 2], "think_time_s": 0.0}
    assert len(workload_key(profile())) == 16


def test_a_draw_is_the_prompts_in_their_order() -> None:
    assert draw(["a", "b"]) == draw(iter(("a", "b"))) != draw(["b", "a"])
    assert len(draw([])) == 64
