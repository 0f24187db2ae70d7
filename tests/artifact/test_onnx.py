import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.artifact.facts import ModelFacts, OnnxFacts
from deploytui.artifact.model import read_model
from deploytui.artifact.onnx import missing_operators
from deploytui.engine.adapter import host_script
from tests.artifact.build import GENAI, TOKENIZER, field, onnx_model, onnx_node, onnx_tensor, save

MATMUL = onnx_node("MatMul", ("x", "w"))
PACKED = onnx_node("MatMulNBits", ("x", "q", "scales"), "com.microsoft", K=32, N=4, bits=4)
ROTARY = onnx_node("GroupQueryAttention", ("x", "cos"), "com.microsoft")
DATA = {"location": "model.onnx.data", "offset": "64", "length": "512"}
RUNTIME = {
    "opset": {"ai.onnx": 21, "com.microsoft": 1},
    "operators": {"ai.onnx": {"MatMul": 1}, "com.microsoft": {"GroupQueryAttention": 1}},
}


def folder(path: Path, model: bytes, data: int | None = None) -> Path:
    save(path, {"genai_config.json": GENAI, "model.onnx": model, "tokenizer.json": TOKENIZER})
    if data is not None:
        save(path, {"model.onnx.data": bytes(data)})
    return path


def only(facts: ModelFacts) -> tuple[str, str, str]:
    assert len(facts.faults) == 1, facts.faults
    return facts.faults[0].kind, facts.faults[0].what, facts.faults[0].why


def test_a_genai_folder_is_told(tmp_path: Path) -> None:
    model = onnx_model([MATMUL, ROTARY], [onnx_tensor("w", 1, (8, 4)), onnx_tensor("cos", 1, (16,))])
    facts = read_model(folder(tmp_path, model))
    assert facts.faults == ()
    assert (facts.format, facts.model_type, facts.context_length, facts.vocabulary) == ("onnx", "llama", 64, 6)
    assert (facts.parameters, facts.dtype, facts.quantization) == (32, "float32", None)
    assert facts.bytes == len(model)
    assert (facts.attention.layers, facts.attention.kv_heads, facts.attention.head_dim) == (2, 2, 2)
    assert facts.onnx == OnnxFacts(
        opset={"ai.onnx": 22, "com.microsoft": 1},
        operators={"ai.onnx": ("MatMul",), "com.microsoft": ("GroupQueryAttention",)},
        providers=("cuda",),
        genai=True,
    )
    assert facts.tokenizer.vocabulary == 3


def test_packed_weights_are_counted_by_their_operator(tmp_path: Path) -> None:
    tensors = [onnx_tensor("q", 2, (4, 1, 16)), onnx_tensor("scales", 1, (4,)), onnx_tensor("w", 1, (8, 4))]
    facts = read_model(folder(tmp_path, onnx_model([MATMUL, PACKED], tensors)))
    assert (facts.parameters, facts.quantization, facts.dtype) == (32 * 4 + 32, "int4", None)


def test_weights_in_a_file_of_their_own_are_counted_and_looked_for(tmp_path: Path) -> None:
    model = onnx_model([MATMUL], [onnx_tensor("w", 1, (16, 8), DATA)])
    path = folder(tmp_path, model, 576)
    facts = read_model(path)
    assert (facts.faults, facts.parameters, facts.bytes) == ((), 128, len(model) + 576)
    save(path, {"model.onnx.data": bytes(575)})
    kind, what, _ = only(read_model(path))
    assert (kind, "has 575 bytes, and the graph's weights end at 576" in what) == ("corrupt", True)
    (path / "model.onnx.data").unlink()
    assert only(read_model(path))[:2] == ("missing_file", "model.onnx.data is not there.")


@pytest.mark.parametrize("location", ["/etc/passwd", "../secret", "a/../../b"])
def test_weights_outside_of_the_folder_are_not_looked_for(tmp_path: Path, location: str) -> None:
    model = onnx_model([MATMUL], [onnx_tensor("w", 1, (4,), {"location": location})])
    assert "not in its folder" in only(read_model(folder(tmp_path, model)))[1]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (b"", "corrupt"),
        (b"\xff" * 64, "corrupt"),
        (field(1, 10), "corrupt"),
        (onnx_model([MATMUL])[:-3], "corrupt"),
        (field(7, b"x")[:-1] + b"\xff", "corrupt"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(9), "corrupt"),
        (b"version https://git-lfs test\nsize 9\n", "missing_file"),
    ],
)
def test_what_is_no_graph_is_told(tmp_path: Path, model: bytes, kind: str) -> None:
    found, what, _ = only(read_model(folder(tmp_path, model)))
    assert (found, "model.onnx" in what) == (kind, True)


def test_graphs_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    node = onnx_node("If")
    for _ in range(40):
        node = onnx_node("If") + field(5, field(1, b"then") + field(6, field(1, node)))
    assert "nested too deeply" in only(read_model(folder(tmp_path, onnx_model([node]))))[2]


def test_a_graph_that_the_configuration_names_and_nobody_has_is_told(tmp_path: Path) -> None:
    path = save(tmp_path, {"genai_config.json": GENAI})
    assert only(read_model(path))[:2] == ("missing_file", "model.onnx is not there.")
    save(path, {"genai_config.json": b"{"})
    assert {fault.kind for fault in read_model(path).faults} == {"corrupt", "missing_file"}


def test_operators_inside_of_branches_are_seen_and_own_functions_are_not_asked_for(tmp_path: Path) -> None:
    inner = onnx_node("If") + field(5, field(1, b"then") + field(6, field(1, onnx_node("Deep"))))
    function = field(1, b"Own") + field(7, onnx_node("Part")) + field(10, b"my.domain")
    model = onnx_model([inner, onnx_node("Own", domain="my.domain")]) + field(25, function)
    facts = read_model(folder(tmp_path, model))
    assert facts.onnx is not None
    assert facts.onnx.operators == {"ai.onnx": ("Deep", "If", "Part")}


def test_operators_that_a_runtime_lacks_are_named() -> None:
    onnx = OnnxFacts(
        opset={"ai.onnx": 22, "com.microsoft": 1, "my.domain": 1},
        operators={"ai.onnx": ("MatMul",), "com.microsoft": ("GroupQueryAttention", "New"), "my.domain": ("Own",)},
    )
    assert missing_operators(onnx, RUNTIME) == ("ai.onnx opset 22 (has 21)", "com.microsoft:New", "my.domain:Own")
    assert missing_operators(onnx, {}) == ()


def test_an_operator_newer_than_the_opset_that_is_imported_is_missing() -> None:
    onnx = OnnxFacts(opset={"ai.onnx": 20}, operators={"ai.onnx": ("RMSNormalization",)})
    assert missing_operators(onnx, {"opset": {}, "operators": {"ai.onnx": {"RMSNormalization": 23}}}) == (
        "ai.onnx:RMSNormalization",
    )


def test_the_probe_answers_also_where_there_is_no_runtime() -> None:
    ran = subprocess.run(
        [sys.executable, "-I", host_script("probe_onnx.py")], capture_output=True, timeout=60, check=True
    )
    answer = json.loads(ran.stdout)
    assert set(answer) == {"found", "version", "error", "detail"}
    assert answer["found"] or "onnxruntime" in answer["error"]


@given(st.data())
def test_no_changed_byte_makes_it_raise(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(onnx_model([MATMUL, PACKED], [onnx_tensor("w", 1, (2, 2)), onnx_tensor("q", 2, (4,), DATA)]))
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "fuzz.onnx"
    path.write_bytes(whole)
    read_model(path)
