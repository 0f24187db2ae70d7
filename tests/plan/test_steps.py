"""The list that the runner walks."""

from hypothesis import given
from hypothesis import strategies as st

from deploytui.plan.steps import plan_steps, remaining, run_order
from deploytui.profile.load_schema import Closed
from deploytui.record.keys import StepKey
from tests.plan.cases import AWQ, BF16, LONGER, profile

THREE = profile(LONGER, BF16, AWQ, baseline="vllm-bf16", repeats=2)
NAMES = ("longer", "vllm-bf16", "awq")


def test_the_baseline_is_measured_first_and_the_others_as_listed() -> None:
    assert run_order(THREE, NAMES) == ("vllm-bf16", "longer", "awq")
    assert run_order(THREE, ("awq", "longer")) == ("longer", "awq")
    assert run_order(profile(LONGER, BF16), ("vllm-bf16", "longer")) == ("longer", "vllm-bf16")


def test_all_repeats_and_tasks_of_a_candidate_stand_inside_one_launch() -> None:
    steps = plan_steps(THREE, ("vllm-bf16",), items={"mine.jsonl": 7})
    assert [(step.key, step.requests) for step in steps] == [
        (StepKey("vllm-bf16", repeat=0), 20),
        (StepKey("vllm-bf16", repeat=1), 20),
        (StepKey("vllm-bf16", task="builtin:basic"), 0),
        (StepKey("vllm-bf16", task="mine.jsonl"), 7),
    ]


def test_interleaved_candidates_go_there_and_back_with_a_launch_a_repeat() -> None:
    steps = plan_steps(THREE, ("vllm-bf16", "longer"), order="interleaved")
    repeats = [(step.key.candidate, step.key.launch, step.key.repeat) for step in steps if step.key.task is None]
    assert repeats == [("vllm-bf16", 0, 0), ("longer", 0, 0), ("longer", 1, 1), ("vllm-bf16", 1, 1)]
    assert {step.key.launch for step in steps if step.key.task} == {0}


def test_the_drift_check_measures_the_first_repeat_again_in_a_launch_of_its_own() -> None:
    assert plan_steps(THREE, NAMES, drift_check=True)[-1].key == StepKey("vllm-bf16", launch=1, repeat=0)
    again = plan_steps(THREE, NAMES, order="interleaved", drift_check=True)[-1].key
    assert again == StepKey("vllm-bf16", launch=2, repeat=0)
    assert plan_steps(THREE, (), drift_check=True) == ()


def test_a_sweep_numbers_its_places() -> None:
    swept = profile(BF16, load=Closed(concurrency=(1, 4)), decide_at=4, repeats=1)
    points = [step.key.point for step in plan_steps(swept, ("vllm-bf16",)) if step.key.task is None]
    assert points == [0, 1]


@given(st.sampled_from(["grouped", "interleaved"]), st.booleans(), st.integers(1, 5), st.data())
def test_what_is_finished_is_never_measured_again(order: str, drift: bool, repeats: int, data: st.DataObject) -> None:
    asked = profile(LONGER, BF16, AWQ, baseline="vllm-bf16", repeats=repeats)
    steps = plan_steps(asked, NAMES, order="interleaved" if order == "interleaved" else "grouped", drift_check=drift)
    keys = [step.key for step in steps]
    assert len(set(keys)) == len(keys) == 3 * (repeats + 2) + drift
    finished = frozenset(data.draw(st.sets(st.sampled_from(keys))))
    left = [step.key for step in remaining(steps, finished)]
    assert left == [key for key in keys if key not in finished]
