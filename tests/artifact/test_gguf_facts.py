import struct
from pathlib import Path

import pytest

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.model import artifact_of, read_model
from tests.artifact.build import PAIRS, TENSORS, gguf, number, numbers, pair, save, text, words


def model(folder: Path, data: bytes, name: str = "m.gguf") -> ModelFacts:
    save(folder, {name: data})
    return read_model(folder / name)


def split(folder: Path, count: int = 2, tensors_told: int | None = None, told: int | None = None) -> Path:
    for at in range(count):
        data = gguf(
            *(PAIRS if at == 0 else PAIRS[:1]),
            pair("split.count", 2, struct.pack("<H", told or count)),
            pair("split.tensors.count", 5, struct.pack("<i", tensors_told or count)),
            tensors=[(f"blk.{at}.ffn.weight", (32, 2), 8)],
        )
        save(folder, {f"m[1]-{at + 1:05}-of-{count:05}.gguf": data})
    return folder / f"m[1]-00001-of-{count:05}.gguf"


def test_a_file_is_described_with_its_mix(tmp_path: Path) -> None:
    facts = model(tmp_path, gguf(*PAIRS))
    assert facts.faults == ()
    assert (facts.format, facts.architecture, facts.quantization) == ("gguf", "llama", "Q4_K_M")
    assert (facts.context_length, facts.vocabulary, facts.parameters) == (8192, 2, 160)
    assert facts.mix == {"Q8_0": 136, "F32": 128}
    assert facts.bytes == (tmp_path / "m.gguf").stat().st_size
    assert artifact_of(facts).mix == facts.mix


def test_plain_weights_have_a_dtype_and_no_quantisation(tmp_path: Path) -> None:
    facts = model(tmp_path, gguf(*PAIRS[:5], number("general.file_type", 1)))
    assert (facts.dtype, facts.quantization) == ("float16", None)


def test_without_a_file_type_the_largest_type_names_it(tmp_path: Path) -> None:
    assert model(tmp_path, gguf(*PAIRS[:5])).quantization == "Q8_0"


def test_attention_is_read_also_where_layers_differ(tmp_path: Path) -> None:
    pairs = (
        *PAIRS,
        number("llama.block_count", 4),
        number("llama.embedding_length", 64),
        number("llama.attention.head_count", 8),
        numbers("llama.attention.head_count_kv", (2, 0, 2, 0)),
        number("llama.attention.sliding_window", 512),
        pair("llama.attention.sliding_window_pattern", 9, struct.pack("<IQ", 7, 4) + bytes([1, 0, 0, 0])),
    )
    told = model(tmp_path, gguf(*pairs)).attention
    assert (told.layers, told.heads, told.kv_heads, told.head_dim) == (2, 8, 2, 8)
    assert (told.sliding_window, told.sliding_layers) == (512, 1)


def test_latent_attention_is_read(tmp_path: Path) -> None:
    arch = "deepseek2"
    pairs = (
        words("general.architecture", arch),
        number(f"{arch}.block_count", 3),
        number(f"{arch}.attention.kv_lora_rank", 512),
        number(f"{arch}.rope.dimension_count", 64),
        number(f"{arch}.attention.head_count_kv", 1),
    )
    told = model(tmp_path, gguf(*pairs)).attention
    assert (told.kv_lora_rank, told.rope_head_dim) == (512, 64)


def test_a_template_and_its_checksum_are_kept(tmp_path: Path) -> None:
    told = model(tmp_path, gguf(*PAIRS, words("tokenizer.chat_template", "{{ x }}"))).tokenizer
    assert told.template == "{{ x }}"
    assert told.template_sha256 is not None


@pytest.mark.parametrize("lost", [1, 40, 136 + 100])
def test_a_file_shorter_than_its_tensors_is_cut_off(tmp_path: Path, lost: int) -> None:
    facts = model(tmp_path, gguf(*PAIRS)[:-lost])
    assert facts.faults[0].kind == "corrupt"
    assert "is not within the file bounds" in facts.faults[0].why
    assert "m.gguf" in facts.faults[0].what


def test_a_file_that_ends_in_its_header_is_damaged(tmp_path: Path) -> None:
    facts = model(tmp_path, gguf(*PAIRS, body=False)[:-9])
    assert (facts.faults[0].kind, facts.architecture) == ("corrupt", "llama")


@pytest.mark.parametrize(
    ("data", "kind", "words_"),
    [
        (gguf(*PAIRS, version=99), "unsupported_format", "GGUF version 99"),
        (gguf(*PAIRS, version=3 << 24), "unsupported_format", "big-endian"),
        (gguf(words("general.architecture", "")), "unsupported_arch", "names no architecture"),
        (gguf(number("n", 1)), "unsupported_arch", "names no architecture"),
        (gguf(words("general.architecture", "clip")), "unsupported_arch", "a vision projector"),
        (gguf(PAIRS[0], words("general.type", "adapter")), "unsupported_arch", "a LoRA adapter"),
        (b"", "corrupt", "is empty"),
        (b"version https://git-lfs test\noid sha256:00\nsize 98362432\n", "missing_file", "Git-LFS pointer"),
        (b"<!DOCTYPE html><html>", "corrupt", "web page"),
    ],
)
def test_what_is_no_text_model_is_named(tmp_path: Path, data: bytes, kind: str, words_: str) -> None:
    facts = model(tmp_path, data)
    assert facts.faults[0].kind == kind
    assert words_ in facts.faults[0].what
    assert facts.format == "gguf"


def test_a_tensor_that_lies_elsewhere_is_told(tmp_path: Path) -> None:
    head = text("output_norm.weight") + struct.pack("<IQIQ", 1, 32, 0, 160)
    moved = text("output_norm.weight") + struct.pack("<IQIQ", 1, 32, 0, 192)
    data = gguf(*PAIRS)
    assert head in data
    assert "starts at 192, not at 160" in model(tmp_path, data.replace(head, moved)).faults[0].why


def test_a_newer_tensor_type_is_a_note_and_no_fault(tmp_path: Path) -> None:
    facts = model(tmp_path, gguf(*PAIRS, tensors=[*TENSORS, ("new", (4,), 99)]))
    assert facts.faults == ()
    assert "99" in facts.notes[0]


def test_the_files_of_a_split_model_are_one_model(tmp_path: Path) -> None:
    first = split(tmp_path)
    facts = read_model(first)
    assert (facts.faults, facts.parameters, len(facts.files)) == ((), 128, 2)
    assert facts.bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    second = first.with_name("m[1]-00002-of-00002.gguf")
    assert read_model(second).path == str(first)


def test_a_missing_file_of_a_split_model_is_named(tmp_path: Path) -> None:
    first = split(tmp_path, 3)
    first.with_name("m[1]-00002-of-00003.gguf").unlink()
    facts = read_model(first)
    assert [fault.kind for fault in facts.faults] == ["missing_file"]
    assert "m[1]-00002-of-00003.gguf" in facts.faults[0].what
    assert facts.parameters is None


def test_files_of_different_models_don_t_make_one(tmp_path: Path) -> None:
    facts = read_model(split(tmp_path, 2, tensors_told=7))
    assert "hold 2 tensors, and the first says 7" in facts.faults[0].what


def test_a_renamed_part_is_told(tmp_path: Path) -> None:
    facts = read_model(split(tmp_path, 2, told=5))
    assert "one of 5 files" in facts.faults[0].what


def test_a_folder_with_one_model_is_that_model(tmp_path: Path) -> None:
    save(tmp_path, {"m.gguf": gguf(*PAIRS), "mmproj-m.gguf": gguf(words("general.architecture", "clip"))})
    assert read_model(tmp_path).path == str(tmp_path / "m.gguf")
    save(tmp_path, {"n.gguf": gguf(*PAIRS)})
    failure = read_model(tmp_path).faults[0]
    assert (failure.kind, "m.gguf, n.gguf" in failure.why) == ("invalid_config", True)
