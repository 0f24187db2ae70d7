"""Keys that must fit each other."""

import pytest

from deploytui.errors import ProfileError
from deploytui.profile.parse import parse_profile
from deploytui.profile.rules import OBJECTIVES

WORKLOAD = "[workload]\nprompt_tokens = 16\n"
CANDIDATE = '[[candidates]]\nname = "a"\nengine = "mock"\n'
SECOND = '[[candidates]]\nname = "vllm-fp8"\nengine = "vllm"\n'


def refusal(text: str) -> ProfileError:
    """The error that a text is refused with."""
    with pytest.raises(ProfileError) as caught:
        parse_profile(text)
    return caught.value


def test_two_candidates_of_one_name_are_refused() -> None:
    assert '`candidates` has the name "a" more than once' in refusal(WORKLOAD + CANDIDATE + CANDIDATE).what


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", ".", "a ", "a\\u0000", "a\\n", "é" * 60])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    escaped = name if "\\u" in name or "\\n" in name else name.replace("\\", "\\\\")
    assert "candidates[0].name" in refusal(f'{WORKLOAD}[[candidates]]\nname = "{escaped}"\nengine = "mock"\n').what


def test_a_baseline_that_does_not_exist_names_the_nearest() -> None:
    error = refusal('baseline = "vllm-fp"\n' + WORKLOAD + CANDIDATE + SECOND)
    assert 'names no candidate: the string "vllm-fp"' in error.what
    assert error.fix == 'Did you mean "vllm-fp8"?'


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_is_taken(objective: str) -> None:
    assert parse_profile(f'objective = "{objective}"\n' + WORKLOAD + CANDIDATE).objective == objective


@pytest.mark.parametrize(
    ("objective", "fix"),
    [
        ("ttft_ms", '"ttft_ms.p95"'),
        ("ttft_ms.p96", '"ttft_ms.p9'),
        ("output_tok", '"output_tok_s"'),
        ("zzz", "Known here"),
    ],
)
def test_an_objective_nobody_can_order_by_is_refused(objective: str, fix: str) -> None:
    error = refusal(f'objective = "{objective}"\n' + WORKLOAD + CANDIDATE)
    assert "`objective`" in error.what
    assert fix in error.fix


def test_a_workload_has_exactly_one_source_of_prompts() -> None:
    assert "`workload` has no prompts" in refusal("[workload]\nseed = 1\n" + CANDIDATE).what
    assert "has both" in refusal(WORKLOAD + 'dataset = "x.jsonl"\n' + CANDIDATE).what
    assert parse_profile('[workload]\ndataset = "x.jsonl"\n' + CANDIDATE).workload.dataset == "x.jsonl"


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("load = { kind = 'closed', concurrency = [1, 8] }", "`workload.decide_at` is missing"),
        (
            "load = { kind = 'closed', concurrency = [1, 8] }\ndecide_at = 4",
            "`workload.decide_at` is none of the loads",
        ),
        ("load = { kind = 'closed', concurrency = [8, 8] }\ndecide_at = 8", "the same number more than once"),
        ("load = { kind = 'poisson', rate = [] }\ndecide_at = 8", "`workload.load.rate` is an empty list"),
        ("load = { kind = 'closed', concurrency = 8 }\ndecide_at = 4", "goes with a list of loads only"),
        ("load = { kind = 'burst' }\ndecide_at = 4", "goes with a list of loads only"),
        ("load = { kind = 'stages', stages = [] }", "`workload.load.stages` is empty"),
    ],
)
def test_a_sweep_says_where_the_decision_is_made(lines: str, what: str) -> None:
    assert what in refusal(WORKLOAD + lines + "\n" + CANDIDATE).what


@pytest.mark.parametrize(
    "lines",
    [
        "load = { kind = 'closed', concurrency = [1, 8] }\ndecide_at = 8",
        "load = { kind = 'poisson', rate = [0.5, 2] }\ndecide_at = 0.5",
        "load = { kind = 'gamma', rate = [1, 2] }\ndecide_at = 2",
        "load = { kind = 'closed', concurrency = 8 }\ndecide_at = 8",
    ],
)
def test_a_decision_at_one_of_the_loads_is_taken(lines: str) -> None:
    assert parse_profile(WORKLOAD + lines + "\n" + CANDIDATE).workload.decide_at is not None


def test_confirm_takes_gates_only() -> None:
    error = refusal(WORKLOAD + CANDIDATE + "[gates.confirm]\nmax_ttft = 'point'\n")
    assert "`gates.confirm.max_ttft` is not a gate" in error.what
    assert error.fix == 'Did you mean "max_ttft_ms"?'


def test_a_task_named_twice_is_refused() -> None:
    assert "more than once" in refusal(WORKLOAD + CANDIDATE + "[quality]\ntasks = ['x.jsonl', 'x.jsonl']\n").what


def test_all_broken_rules_are_told_at_once() -> None:
    error = refusal('baseline = "x"\nobjective = "y"\n' + WORKLOAD + CANDIDATE + CANDIDATE)
    assert "more than once" in error.what
    assert "`baseline`" in error.why
    assert "`objective`" in error.why
