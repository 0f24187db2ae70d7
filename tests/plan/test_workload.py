"""When two workloads are the same one."""

import json
from typing import Any

import pytest

from deploytui.plan.workload import draw, workload_identity, workload_key
from deploytui.profile.schema import Closed, Poisson, Sampling
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
    ],
)
def test_all_that_changes_the_load_makes_another_workload(other: dict[str, Any]) -> None:
    assert workload_key(profile(**other)) != workload_key(profile())


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
