import json
from pathlib import Path

import pytest

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.model import read_model
from tests.artifact.build import LLAMA, TOKENIZER, WEIGHTS, checkpoint, save, sharded, tensors_file

INDEX = "model.safetensors.index.json"
SECOND = "model-00002-of-00002.safetensors"


def only(facts: ModelFacts) -> tuple[str, str, str]:
    assert len(facts.faults) == 1, facts.faults
    return facts.faults[0].kind, facts.faults[0].what, facts.faults[0].why


def test_a_whole_checkpoint_is_told(tmp_path: Path) -> None:
    facts = read_model(checkpoint(tmp_path / "m"))
    assert (facts.faults, facts.notes) == ((), ())
    assert (facts.format, facts.architecture, facts.model_type) == ("safetensors", "LlamaForCausalLM", "llama")
    assert (facts.parameters, facts.dtype, facts.quantization) == (56, "bfloat16", None)
    assert facts.bytes == (tmp_path / "m" / "model.safetensors").stat().st_size
    assert facts.mix == {"BF16": 112}
    assert (facts.context_length, facts.vocabulary, facts.tied) == (128, 6, True)
    told = facts.attention
    assert (told.layers, told.heads, told.kv_heads, told.head_dim, told.hidden_size) == (2, 4, 2, 2, 8)
    assert (facts.tokenizer.kind, facts.tokenizer.vocabulary) == ("BPE", 3)
    assert facts.tokenizer.template == "{{ messages }}"
    assert {file.path for file in facts.files} >= {"config.json", "model.safetensors", "tokenizer.json"}


def test_shards_are_one_model(tmp_path: Path) -> None:
    facts = read_model(sharded(tmp_path / "m"))
    assert (facts.faults, facts.parameters) == ((), 56)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / SECOND).unlink()
    assert only(read_model(folder))[:2] == ("missing_file", f"{SECOND} is not there.")


def test_a_shard_missing_from_a_numbered_set_without_index_is_named(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / INDEX).unlink()
    assert "can't load 2 files without it" in read_model(folder).notes[0]
    (folder / SECOND).unlink()
    assert SECOND in only(read_model(folder))[1]


def test_a_dangling_link_is_named_with_its_target(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / SECOND).unlink()
    (folder / SECOND).symlink_to("../blobs/gone")
    kind, what, why = only(read_model(folder))
    assert (kind, what) == ("missing_file", f"{SECOND} is a dangling link.")
    assert "../blobs/gone" in why


def test_an_unfinished_download_is_named(tmp_path: Path) -> None:
    snapshot = sharded(tmp_path / "models--a--b" / "snapshots" / "0123")
    (snapshot / SECOND).unlink()
    save(snapshot.parent.parent / "blobs", {"abc.incomplete": b"half"})
    kind, what, why = only(read_model(snapshot))
    assert (kind, "its download was not finished" in what) == ("missing_file", True)
    assert "abc.incomplete" in why


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / SECOND).write_bytes((folder / SECOND).read_bytes()[:-3])
    kind, what, why = only(read_model(folder))
    assert (kind, SECOND in what, "need 16 bytes, and 13 are there" in why) == ("corrupt", True, True)


def test_a_stale_index_is_told(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"]["lm_head.weight"] = SECOND
    (folder / INDEX).write_text(json.dumps(index))
    kind, what, _ = only(read_model(folder))
    assert kind == "corrupt"
    assert f"lm_head.weight is not in {SECOND}" in what


def test_a_tensor_in_two_files_is_told(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    (folder / SECOND).write_bytes(tensors_file(WEIGHTS))
    assert "model.embed_tokens.weight is in more than one file" in only(read_model(folder))[1]


@pytest.mark.parametrize(
    "index",
    [
        *(b"{}", b"[]", b'{"weight_map": {}}', b'{"weight_map": {"a": 7}}', b"\xff", b"[" * 50_000),
        *(b'{"weight_map": {"a": "../../x"}}', b'{"weight_map": {"a": "/etc/passwd"}}', b'{"weight_map": {"a": ""}}'),
    ],
)
def test_an_index_that_is_none_is_told(tmp_path: Path, index: bytes) -> None:
    folder = sharded(tmp_path / "m")
    (folder / INDEX).write_bytes(index)
    assert only(read_model(folder))[0] == "corrupt"


def test_a_pointer_in_place_of_a_shard_is_told(tmp_path: Path) -> None:
    folder = sharded(tmp_path / "m")
    save(folder, {SECOND: b"version https://git-lfs test\noid sha256:00\nsize 99\n"})
    assert only(read_model(folder))[1] == f"{SECOND} is a Git-LFS pointer, not the weights."


def test_a_folder_without_weights_says_so(tmp_path: Path) -> None:
    folder = save(tmp_path / "m", {"config.json": LLAMA})
    facts = read_model(folder)
    assert (facts.architecture, only(facts)[0]) == ("LlamaForCausalLM", "missing_file")
    assert "no weights" in only(facts)[1]
    save(folder, {"adapter_config.json": {}, "adapter_model.safetensors": tensors_file(WEIGHTS)})
    assert "LoRA adapter" in only(read_model(folder))[1]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xff", b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"])
def test_a_broken_configuration_is_told(tmp_path: Path, content: bytes) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "config.json").write_bytes(content)
    kind, what, _ = only(read_model(folder))
    assert (kind, "config.json" in what) == ("corrupt", True)


def test_a_missing_configuration_is_told(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "config.json").unlink()
    assert only(read_model(folder))[:2] == ("missing_file", "config.json is not there.")


def test_a_folder_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    assert "is a folder, where a file belongs" in only(read_model(folder))[1]


def test_what_two_files_say_differently_is_noted(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", dtype="float32", vocab_size=2)
    save(folder, {"model.safetensors": tensors_file({**WEIGHTS, "lm_head.weight": ("BF16", (6, 8), 96)})})
    notes = " ".join(read_model(folder).notes)
    assert "config.json says float32, and most weights are bfloat16" in notes
    assert "the files hold both" in notes
    assert "The tokenizer has 3 tokens, the model 2" in notes


def test_tied_weights_are_seen_where_nobody_tells(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m", tie_word_embeddings=None)
    assert read_model(folder).tied is True
    save(folder, {"model.safetensors": tensors_file({**WEIGHTS, "lm_head.weight": ("BF16", (6, 8), 96)})})
    assert read_model(folder).tied is False


def test_packed_weights_are_counted_as_what_they_stand_for(tmp_path: Path) -> None:
    packed = {
        "model.embed_tokens.weight": ("F16", (6, 8), 96),
        "model.layers.0.q_proj.qweight": ("I32", (8, 2), 64),
        "model.layers.0.q_proj.qzeros": ("I32", (1, 2), 8),
        "model.layers.0.q_proj.scales": ("F16", (1, 16), 32),
    }
    block = {"quant_method": "awq", "bits": 4}
    folder = checkpoint(tmp_path / "m", quantization_config=block)
    save(folder, {"model.safetensors": tensors_file(packed)})
    facts = read_model(folder)
    assert (facts.quantization, facts.parameters, facts.dtype) == ("awq-4bit", 48 + 8 * 2 * 8, None)
    checkpoint(folder, quantization_config={"quant_method": "awq"})
    save(folder, {"model.safetensors": tensors_file(packed)})
    assert read_model(folder).parameters is None


@pytest.mark.parametrize(
    ("name", "block", "found"),
    [
        ("hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4"}}, "modelopt-fp4"),
        ("quantize_config.json", {"bits": 4, "group_size": 128}, "gptq-4bit"),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 128}, "awq-4bit"),
    ],
)
def test_the_quantisation_may_stand_in_a_file_of_its_own(
    tmp_path: Path, name: str, block: dict[str, object], found: str
) -> None:
    folder = save(checkpoint(tmp_path / "m"), {name: block})
    assert read_model(folder).quantization == found


def test_code_that_comes_with_the_model_is_seen(tmp_path: Path) -> None:
    assert read_model(checkpoint(tmp_path / "a", auto_map={"AutoConfig": "c.C"})).custom_code
    folder = save(checkpoint(tmp_path / "b"), {"tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["t.T", None]}}})
    assert read_model(folder).custom_code
    assert not read_model(checkpoint(tmp_path / "c")).custom_code


def test_one_file_of_a_checkpoint_is_known_as_such(tmp_path: Path) -> None:
    facts = read_model(checkpoint(tmp_path / "m") / "model.safetensors")
    assert (facts.whole, facts.faults, facts.parameters, facts.architecture) == (False, (), 56, "LlamaForCausalLM")
    alone = save(tmp_path / "n", {"x.safetensors": tensors_file(WEIGHTS)}) / "x.safetensors"
    assert (read_model(alone).faults, read_model(alone).parameters) == ((), 56)


def test_other_weights_beside_are_noted(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    save(folder, {"consolidated.safetensors": tensors_file(WEIGHTS), "pytorch_model.bin": b"\x80"})
    facts = read_model(folder)
    assert facts.parameters == 56
    assert "Mistral" in facts.notes[0]
    assert "Pickled" in facts.notes[1]


def test_the_hubs_name_for_a_file_is_a_declared_checksum(tmp_path: Path) -> None:
    digest = "a" * 64
    save(tmp_path / "blobs", {digest: tensors_file(WEIGHTS)})
    folder = save(tmp_path / "snapshots" / "0123", {"config.json": LLAMA, "tokenizer.json": TOKENIZER})
    (folder / "model.safetensors").symlink_to(f"../../blobs/{digest}")
    facts = read_model(folder)
    assert facts.faults == ()
    weights = next(file for file in facts.files if file.path == "model.safetensors")
    assert (weights.sha256, weights.declared) == (digest, True)


def test_links_that_go_round_end(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "m")
    (folder / "again").symlink_to(folder)
    assert len(read_model(folder).files) == 4
