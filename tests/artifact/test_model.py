import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.artifact.format import format_of
from deploytui.artifact.model import read_model
from deploytui.artifact.tensorrt import capability_of
from deploytui.artifact.tokenizer import template_in
from tests.artifact.build import LLAMA, PAIRS, TENSORRT, TOKENIZER, checkpoint, engine_folder, field, gguf, save

NAMES = (
    *("config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json", "genai_config.json"),
    *("model.onnx", "m.gguf", "rank0.engine", "pytorch_model.bin", "tokenizer.model"),
)


def archive() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("archive/data.pkl", b"\x80\x02.")
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model.safetensors", "safetensors"),
        ("model.safetensors.index.json", "safetensors"),
        ("genai_config.json", "onnx"),
        ("rank0.engine", "tensorrt"),
        ("pytorch_model-00001-of-00002.bin", "pytorch"),
        ("consolidated.00.pth", "pytorch"),
        ("m.gguf", "gguf"),
        ("README.md", None),
    ],
)
def test_a_folder_shows_its_format(tmp_path: Path, name: str, kind: str | None) -> None:
    (tmp_path / name).write_bytes(b"12345")
    assert format_of(tmp_path) == kind
    assert read_model(tmp_path).faults


def test_a_gguf_file_is_known_by_its_content(tmp_path: Path) -> None:
    path = save(tmp_path, {"model.bin": gguf(*PAIRS)}) / "model.bin"
    assert (format_of(path), read_model(path).quantization) == ("gguf", "Q4_K_M")


@pytest.mark.parametrize("name", ["nothing", "a\0b", "x" * 5000])
def test_a_path_where_nothing_is_has_a_fault(tmp_path: Path, name: str) -> None:
    assert read_model(tmp_path / name).faults[0].kind == "missing_file"


def test_what_is_no_file_is_told_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    (tmp_path / "loop").symlink_to("loop")
    assert "no ordinary file" in read_model(tmp_path / "pipe.gguf").faults[0].what
    assert "leads back to itself" in read_model(tmp_path / "loop").faults[0].what


def test_a_file_that_shows_nothing_and_an_empty_folder_are_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert read_model(tmp_path / "notes.txt").faults[0].kind == "unsupported_format"
    assert read_model(tmp_path).faults[0].kind == "unsupported_format"


def test_a_pickled_checkpoint_is_known_as_such_and_never_loaded(tmp_path: Path) -> None:
    folder = save(tmp_path, {"config.json": LLAMA, "pytorch_model.bin": archive(), "tokenizer.json": TOKENIZER})
    facts = read_model(folder)
    assert (facts.faults, facts.format, facts.pickled, facts.parameters) == ((), "pytorch", True, None)
    assert facts.bytes == len(archive())


@pytest.mark.parametrize("data", [archive()[:-30], b"", b"hello", b"version https://git-lfs x\nsize 1\n"])
def test_pickled_weights_that_are_not_whole_are_told(tmp_path: Path, data: bytes) -> None:
    folder = save(tmp_path, {"config.json": LLAMA, "pytorch_model.bin": data})
    assert "pytorch_model.bin" in read_model(folder).faults[0].what


def test_a_missing_part_of_pickled_weights_is_named(tmp_path: Path) -> None:
    parts = [f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)]
    folder = save(tmp_path, {"config.json": LLAMA, parts[0]: b"\x80\x02."})
    assert parts[1] in read_model(folder).faults[0].what
    save(folder, {"pytorch_model.bin.index.json": {"weight_map": {"a": parts[0], "b": parts[1]}}})
    assert parts[1] in read_model(folder).faults[0].what


def test_an_engine_folder_tells_what_it_was_built_with(tmp_path: Path) -> None:
    facts = read_model(engine_folder(tmp_path))
    assert facts.faults == ()
    assert (facts.format, facts.architecture, facts.quantization) == ("tensorrt", "LlamaForCausalLM", "fp8")
    built = facts.tensorrt
    assert built is not None
    assert (built.version, built.tensor_parallel, built.pipeline_parallel) == ("1.2.1", 2, 1)
    assert (built.max_batch_size, built.max_seq_len) == (8, 256)
    assert (built.built_for, built.compute_capability) == ("H100-SXM", "9.0")


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    folder = engine_folder(tmp_path)
    (folder / "rank1.engine").unlink()
    assert read_model(folder).faults[0].what == "rank1.engine is not there."
    save(folder, {"rank1.engine": b"", "config.json": {**TENSORRT, "build_config": None}})
    facts = read_model(folder)
    assert "is empty" in facts.faults[0].what
    assert facts.context_length is None


@pytest.mark.parametrize(
    ("name", "capability"),
    [("A100-SXM-80GB", "8.0"), ("L40S", "8.9"), ("L4", "8.9"), ("H200-SXM", "9.0"), ("A10G", "8.6"), ("X1", None)],
)
def test_names_of_gpus_tell_their_compute_capability(name: str, capability: str | None) -> None:
    assert capability_of(name) == capability


@pytest.mark.parametrize(
    ("files", "kind", "vocabulary"),
    [
        ({"tokenizer.json": {"model": {"type": "Unigram", "vocab": [["a", 0.0], ["b", 0.0]]}}}, "Unigram", 2),
        ({"tokenizer.json": {"model": {"merges": [], "vocab": {"a": 0}}}}, "BPE", 1),
        ({"tokenizer.model": field(1, b"piece") * 3 + field(2, b"x")}, "sentencepiece", 3),
        ({"vocab.json": {"a": 0, "b": 1}}, "BPE", 2),
        ({"vocab.txt": "a\nb\n"}, "WordPiece", 2),
        ({"tekken.json": {"config": {"default_vocab_size": 131072}}}, "tekken", 131072),
        ({}, None, None),
    ],
)
def test_tokenizers_of_all_kinds_are_told(
    tmp_path: Path, files: dict[str, Any], kind: str | None, vocabulary: int | None
) -> None:
    folder = checkpoint(tmp_path)
    (folder / "tokenizer.json").unlink()
    told = read_model(save(folder, files)).tokenizer
    assert (told.kind, told.vocabulary) == (kind, vocabulary)
    assert (told.sha256 is None) == (kind is None)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_a_broken_tokenizer_is_a_fault(tmp_path: Path, name: str) -> None:
    folder = checkpoint(tmp_path)
    (folder / "chat_template.jinja").unlink()
    assert name in read_model(save(folder, {name: b"{"})).faults[0].what


@pytest.mark.parametrize(
    ("told", "template"),
    [
        ("t", "t"),
        ([{"name": "tool_use", "template": "u"}, {"name": "default", "template": "d"}], "d"),
        ([{"name": "tool_use", "template": "u"}], "u"),
        ([7, {}], None),
        (7, None),
    ],
)
def test_of_several_templates_the_default_one_counts(told: Any, template: str | None) -> None:
    assert template_in({"chat_template": told}) == template


def test_a_long_template_is_known_by_its_checksum_alone(tmp_path: Path) -> None:
    told = read_model(save(checkpoint(tmp_path), {"chat_template.jinja": "x" * 100_000})).tokenizer
    assert told.template is None
    assert told.template_sha256 is not None


@given(st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=60), max_size=4))
def test_no_folder_makes_it_raise(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    read_model(save(tmp_path_factory.mktemp("fuzz"), files))
