"""The choice of files over a repository's listing."""

import pytest

from deploytui.artifact.hub_files import Chosen, HubFile, HubModel, hub_model, wanted_files
from deploytui.record.facts import Failure

LLAMA = (
    *("config.json", "tokenizer.json", "chat_template.jinja", "README.md", "training_args.bin", "pytorch_model.bin"),
    *("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"),
    *("consolidated.safetensors", "original/consolidated.00.pth", "onnx/model.onnx"),
)
GGUF = (
    "m-Q4_K_M.gguf",
    "m-Q4_K_S.gguf",
    "q8/m-Q8_0-00002-of-00002.gguf",
    "q8/m-Q8_0-00001-of-00002.gguf",
    "mmproj.gguf",
)
ONNX = ("cpu-int4/genai_config.json", "cpu-int4/model.onnx", "cuda/genai_config.json", "cuda/model.onnx")


def wanted(
    names: tuple[str, ...], formats: str, quantization: str | None = None, part: str | None = None
) -> Chosen | Failure:
    listing = tuple(HubFile(path=name, bytes=1) for name in names)
    return wanted_files("org/repo", listing, formats.split(), quantization, part)


def chosen(found: Chosen | Failure) -> tuple[set[str], str]:
    assert isinstance(found, Chosen), found
    return {file.path for file in found.files}, found.model


def test_weights_come_in_one_format_and_once() -> None:
    files, model = chosen(wanted(LLAMA, "safetensors pytorch"))
    assert model == ""
    assert files == {*LLAMA[:3], *LLAMA[6:9]}
    assert chosen(wanted(LLAMA, "pytorch"))[0] >= {"pytorch_model.bin", "tokenizer.json"}
    assert "training_args.bin" not in chosen(wanted(LLAMA, "pytorch"))[0]


def test_one_gguf_with_all_its_shards_is_chosen() -> None:
    assert chosen(wanted(GGUF, "gguf", "q4_k_m")) == ({"m-Q4_K_M.gguf"}, "m-Q4_K_M.gguf")
    shards = {"q8/m-Q8_0-00001-of-00002.gguf", "q8/m-Q8_0-00002-of-00002.gguf"}
    assert chosen(wanted(GGUF, "gguf", "Q8_0")) == (shards, min(shards))
    assert chosen(wanted(GGUF, "gguf", part=max(shards))) == (shards, min(shards))


def test_a_folder_can_be_named() -> None:
    assert chosen(wanted(ONNX, "onnx", part="cuda/")) == (set(ONNX[2:]), "cuda")


@pytest.mark.parametrize(
    ("names", "formats", "quantization", "part", "kind"),
    [
        (GGUF, "gguf", None, None, "invalid_config"),
        (GGUF, "gguf", "Q5_0", None, "invalid_config"),
        (GGUF, "gguf", None, "other.gguf", "invalid_config"),
        (GGUF, "safetensors", None, None, "unsupported_format"),
        (ONNX, "onnx", None, None, "invalid_config"),
        ((), "onnx", None, None, "unsupported_format"),
    ],
)
def test_what_can_not_be_chosen_says_what_there_is(
    names: tuple[str, ...], formats: str, quantization: str | None, part: str | None, kind: str
) -> None:
    found = wanted(names, formats, quantization, part)
    assert isinstance(found, Failure)
    assert found.kind == kind
    assert found.fix


def test_what_may_be_meant_by_a_model() -> None:
    assert hub_model("org/repo") == HubModel("org/repo")
    assert hub_model("org/repo:sub/m-Q4.gguf") == HubModel("org/repo", "sub/m-Q4.gguf")
    for path in ("models/m.gguf", "None", "/a/b", "./a/b", "a/b/c", "~/a", "", "../a", "org/re po", "a/b:"):
        assert hub_model(path) is None
