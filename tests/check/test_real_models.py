"""The same small model in three formats, read from its files and held against what is known of it."""

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.model import read_model
from deploytui.check.loaders import who_can_load
from deploytui.check.probe import run_probe
from deploytui.check.told import onnx_probe
from deploytui.profile.schema import Candidate
from tests.engines import engine_python, model_path

PARAMETERS = 134_515_008
BFLOAT16_BYTES = 2 * PARAMETERS


def attention(facts: ModelFacts) -> tuple[int | None, ...]:
    told = facts.attention
    return told.layers, told.heads, told.kv_heads, told.head_dim, told.hidden_size


@pytest.mark.parametrize(
    ("kind", "quantization", "dtype"),
    [("gguf", "Q4_1", None), ("safetensors", None, "bfloat16"), ("onnx", "int4", None)],
)
def test_every_format_tells_the_same_model(kind: str, quantization: str | None, dtype: str | None) -> None:
    facts = read_model(model_path(kind))
    assert facts.faults == ()
    assert (facts.format, facts.quantization, facts.dtype) == (kind, quantization, dtype)
    assert (facts.parameters, facts.context_length, facts.vocabulary) == (PARAMETERS, 8192, 49152)
    assert attention(facts) == (30, 9, 3, 64, 576)
    assert facts.tokenizer.vocabulary == 49152
    assert facts.tokenizer.template_sha256 == read_model(model_path("gguf")).tokenizer.template_sha256


def test_bytes_are_those_on_disk() -> None:
    gguf, plain = read_model(model_path("gguf")), read_model(model_path("safetensors"))
    assert gguf.bytes == 98_362_432
    assert plain.mix == {"BF16": BFLOAT16_BYTES}
    assert plain.bytes == (Path(plain.path) / "model.safetensors").stat().st_size


def test_the_installed_runtime_has_the_graphs_operators_and_not_an_invented_one() -> None:
    candidate = Candidate(name="a", engine="onnxruntime-genai", python=str(engine_python("onnxruntime-genai")))
    probed = anyio.run(run_probe, onnx_probe(candidate))
    assert (probed.found, probed.error) == (True, "")
    facts = read_model(model_path("onnx"))
    assert facts.onnx is not None
    loads = {row.engine: row.failure for row in who_can_load(facts, probed)}
    assert loads["onnxruntime-genai"] is None
    operators = {**facts.onnx.operators, "com.microsoft": (*facts.onnx.operators["com.microsoft"], "Invented")}
    other = replace(facts, onnx=replace(facts.onnx, operators=operators))
    failure = {row.engine: row.failure for row in who_can_load(other, probed)}["onnxruntime-genai"]
    assert failure is not None
    assert "com.microsoft:Invented" in failure.what
