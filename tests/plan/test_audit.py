"""Which kind of change each difference is."""

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from deploytui.plan.audit import FACTOR_OF, FACTORS, by_factor, confounded, differences, factors
from deploytui.profile.schema import Candidate, Prepare, Settings
from tests.plan.cases import AWQ, BF16, GGUF_BF16, GGUF_Q4, LONGER, SGLANG, profile
from tests.profile.strategies import candidates

NO_PART_OF_A_DEPLOYMENT = {"name", "api_key_env", "transport", "form", "effort_days", "price_per_hour"}
NO_PART_OF_A_DEPLOYMENT |= {"allow_pickle", "sha256", "ready_path"}
PROD = Candidate(
    name="prod",
    engine="openai",
    base_url="http://127.0.0.1:8000",
    declared={"hardware": "1x H100-80G", "format": "safetensors", "engine_version": "0.33"},
)


def test_every_key_of_a_candidate_has_its_factor() -> None:
    assert FACTOR_OF.keys() | NO_PART_OF_A_DEPLOYMENT == {field.name for field in msgspec.structs.fields(Candidate)}
    assert set(FACTOR_OF.values()) == set(FACTORS)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (BF16, ()),
        (replace(BF16, name="twin", effort_days=2.0, price_per_hour=3.0), ()),
        (replace(BF16, sha256={"a": "0" * 64}, allow_pickle=True, ready_path="/ready"), ()),
        (replace(BF16, trust_remote_code=True), ("runtime",)),
        (replace(BF16, prepare=Prepare(precision="int4")), ("artifact",)),
        (replace(BF16, prepare=Prepare(args=("--symmetric",))), ("artifact",)),
        (LONGER, ("runtime",)),
        (AWQ, ("artifact",)),
        (SGLANG, ("engine",)),
        (GGUF_BF16, ("engine",)),
        (GGUF_Q4, ("artifact", "engine")),
        (replace(BF16, engine_version="==0.33.0"), ("engine",)),
        (replace(BF16, python="/opt/other/bin/python"), ("engine",)),
        (replace(BF16, model="meta-llama/Llama-3.1-8B-Instruct"), ("model",)),
        (replace(BF16, revision="v2"), ("model",)),
        (replace(BF16, model="/models/Qwen2.5-7B-Instruct"), ("artifact",)),
        (replace(BF16, format="safetensors"), ()),
        (replace(BF16, dtype="float16"), ("artifact",)),
        (replace(BF16, args=("--enforce-eager",)), ("runtime",)),
        (replace(BF16, env={"VLLM_USE_V1": "0"}), ("runtime",)),
        (replace(BF16, env={"CUDA_VISIBLE_DEVICES": "1"}), ("environment",)),
        (replace(BF16, devices=2), ("environment",)),
        (replace(BF16, devices=2, settings=replace(BF16.settings, tensor_parallel=2)), ("runtime",)),
        (replace(BF16, device="cpu", settings=Settings(max_model_len=8192, threads=8)), ("environment",)),
        (replace(LONGER, engine="sglang"), ("engine", "runtime")),
    ],
)
def test_a_difference_belongs_to_what_forces_it(other: Candidate, expected: tuple[str, ...]) -> None:
    assert factors(BF16, other) == expected


def test_two_gguf_files_of_one_model_are_two_artifacts_of_it() -> None:
    q8 = replace(GGUF_Q4, model="/models/qwen2.5-7b-instruct-q8_0.gguf")
    assert by_factor(GGUF_Q4, q8) == {
        "artifact": {
            "model": ("/models/qwen2.5-7b-instruct-q4_k_m.gguf", "/models/qwen2.5-7b-instruct-q8_0.gguf"),
            "quantization": ("q4_k_m", "q8_0"),
        }
    }


def test_one_model_file_on_two_engines_is_no_other_artifact() -> None:
    here = Candidate(name="a", engine="llamacpp", model="builtin:x-q4_1", device="cpu", settings=Settings(threads=1))
    there = Candidate(name="b", engine="vllm", model="builtin:x-q4_1", device="cuda")
    assert factors(here, there) == ("engine", "environment")


def test_what_an_endpoint_declares_stands_in_for_what_is_not_known() -> None:
    changed = differences(BF16, PROD)
    assert "format" not in changed
    assert changed["engine_version"] == (None, "0.33")
    assert by_factor(BF16, PROD)["environment"] == {
        "device": ("cuda", None),
        "declared.hardware": (None, "1x H100-80G"),
    }


def test_secrets_are_left_out_of_what_is_shown() -> None:
    other = replace(
        BF16, env={"HF_TOKEN": "hf_abc", "X": "1"}, args=("--api-key", "sk-1", "--max-num-batched-tokens", "9")
    )
    changed = differences(BF16, other)
    assert changed["env.HF_TOKEN"] == (None, "(hidden)")
    assert changed["env.X"] == (None, "1")
    assert changed["args"] == (None, "--api-key (hidden) --max-num-batched-tokens 9")


@given(candidates("a"), candidates("b"))
def test_every_difference_has_exactly_one_factor_and_the_same_seen_from_either_side(a: Candidate, b: Candidate) -> None:
    fields = [field for found in by_factor(a, b).values() for field in found]
    assert sorted(fields) == sorted(differences(a, b))
    assert differences(a, a) == {}
    assert {key: pair[::-1] for key, pair in differences(a, b).items()} == differences(b, a)
    assert factors(a, b) == factors(b, a)


def test_a_confounded_candidate_gets_the_single_steps_that_would_separate_it() -> None:
    (found,) = confounded(profile(BF16, LONGER, GGUF_Q4, baseline="vllm-bf16"))
    assert (found.candidate, found.baseline, tuple(found.fields)) == ("gguf-q4", "vllm-bf16", ("artifact", "engine"))
    engine = found.steps[1].candidate
    assert engine.name == "vllm-bf16+engine"
    assert (engine.engine, engine.settings.gpu_layers, engine.settings.memory_share) == ("llamacpp", 99, None)
    assert engine.dtype == "bfloat16"
    assert "gguf-q4 differs from vllm-bf16 in 2 factors: artifact (" in found.text
    assert "vllm-bf16 with engine = llamacpp" in found.text


def test_a_step_that_the_profile_has_already_is_not_proposed() -> None:
    both = replace(SGLANG, name="both", settings=replace(SGLANG.settings, max_model_len=16384))
    (found,) = confounded(profile(BF16, LONGER, SGLANG, both, baseline="vllm-bf16"))
    assert found.steps == ()
    assert found.text == (
        "both differs from vllm-bf16 in 2 factors: engine (engine, python, args), runtime (settings.max_model_len)."
    )


def test_a_step_takes_single_entries_of_tables() -> None:
    other = replace(AWQ, env={"X": "1"}, declared={"note": "y"})
    base = replace(BF16, env={"Z": "2"})
    steps = {step.factor: step.candidate for step in confounded(profile(base, other, baseline="vllm-bf16"))[0].steps}
    assert steps["runtime"].env == {"X": "1"}
    assert steps["environment"].declared == {"note": "y"}
    assert steps["artifact"].env == {"Z": "2"}


def test_without_a_baseline_nothing_is_confounded() -> None:
    assert confounded(profile(BF16, GGUF_Q4)) == ()
