"""The rows of a session before anything runs."""

import pytest

from deploytui.plan.cases import artifact_label, planned_candidates
from deploytui.plan.labels import model_identity
from deploytui.profile.schema import Candidate, Prepare
from tests.plan.cases import AWQ, BF16, GGUF_Q4, LONGER, profile


@pytest.mark.parametrize(
    ("candidate", "label"),
    [
        (Candidate("a", "llamacpp", model="builtin:smollm2-135m-instruct-q4_1"), "GGUF Q4_1"),
        (Candidate("a", "llamacpp", model="/m/SmolLM2-135M-Instruct.Q4_1.gguf"), "GGUF Q4_1"),
        (Candidate("a", "llamacpp", model="Qwen3-8B-UD-Q4_K_XL.gguf"), "GGUF Q4_K_XL"),
        (Candidate("a", "llamacpp", model="x-IQ2_XXS.gguf"), "GGUF IQ2_XXS"),
        (Candidate("a", "llamacpp", model="x-f16.gguf"), "GGUF FP16"),
        (Candidate("a", "llamacpp", model="cut-short.gguf"), "GGUF"),
        (Candidate("a", "vllm", model="org/x-GGUF", quantization="Q5_0"), "GGUF Q5_0"),
        (Candidate("a", "vllm", model="org/x", dtype="bfloat16"), "bf16"),
        (Candidate("a", "vllm", model="org/x-AWQ"), "AWQ"),
        (Candidate("a", "vllm", model="org/x-GPTQ-Int4", dtype="float16"), "GPTQ"),
        (Candidate("a", "vllm", model="org/x-FP8-dynamic"), "fp8"),
        (Candidate("a", "vllm", model="org/x", dtype="auto"), "safetensors"),
        (Candidate("a", "onnxruntime-genai", model="/m/x", quantization="int4"), "ONNX int4"),
        (Candidate("a", "onnxruntime-genai", model="/m/x-bf16", prepare=Prepare(precision="int4")), "ONNX int4"),
        (Candidate("a", "tensorrt-llm", model="/m/rank0.engine", quantization="fp8"), "TensorRT fp8"),
        (Candidate("a", "openai", declared={"format": "safetensors", "dtype": "bfloat16"}), "bf16"),
        (Candidate("a", "openai"), "unknown"),
        (Candidate("a", "mock"), "unknown"),
    ],
)
def test_an_artifact_is_named_as_people_name_it(candidate: Candidate, label: str) -> None:
    assert artifact_label(candidate) == label


@pytest.mark.parametrize(
    "model",
    [
        "Qwen/Qwen2.5-7B-Instruct",
        "/models/Qwen2.5-7B-Instruct/",
        "Qwen/Qwen2.5-7B-Instruct-AWQ",
        "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4",
        "neuralmagic/Qwen2.5-7B-Instruct-FP8-dynamic",
        "bartowski/Qwen2.5-7B-Instruct-GGUF",
        "/m/qwen2.5-7b-instruct-q4_k_m.gguf",
        "/m/Qwen2.5-7B-Instruct.IQ4_XS.gguf",
        "/m/qwen2.5-7b-instruct-fp16-00001-of-00004.gguf",
    ],
)
def test_builds_of_one_model_are_known_as_one(model: str) -> None:
    assert model_identity(Candidate("a", "vllm", model=model)) == "qwen2.5-7b-instruct"


def test_a_name_that_is_only_a_format_stays_a_name() -> None:
    assert model_identity(Candidate("a", "vllm", model="fp8")) == "fp8"
    assert model_identity(Candidate("a", "mock")) is None


def test_rows_stand_in_the_order_they_are_measured_and_say_what_differs() -> None:
    rows = planned_candidates(profile(LONGER, BF16, AWQ, GGUF_Q4, baseline="vllm-bf16"), ("vllm-bf16", "longer", "awq"))
    assert [row.name for row in rows] == ["vllm-bf16", "longer", "awq"]
    assert (rows[0].differs, rows[0].factors) == ({}, ())
    assert (rows[1].differs, rows[1].factors) == ({"settings.max_model_len": "8192 → 16384"}, ("runtime",))
    assert rows[2].differs["quantization"] == "default → awq"
    assert (rows[2].artifact, rows[2].engine) == ("AWQ", "vllm")


def test_without_a_baseline_nothing_differs() -> None:
    assert [row.differs for row in planned_candidates(profile(BF16, AWQ), ("vllm-bf16", "awq"))] == [{}, {}]
