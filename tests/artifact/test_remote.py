import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.hub_files import hub_model
from deploytui.artifact.remote import remote_facts
from deploytui.check.inspect import inspect_command
from tests.artifact.build import GENAI, PAIRS, checkpoint, gguf, onnx_model, onnx_node, sharded
from tests.artifact.hub_server import Hub, Repository, hub

COMMIT = "1" * 40


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with hub() as state:
        for name, value in state.env(str(tmp_path / "hf")).items():
            monkeypatch.setenv(name, value)
        yield state


def push(served: Hub, files: dict[str, bytes]) -> None:
    served.repositories["org/m"] = Repository()
    served.repositories["org/m"].push(COMMIT, files)


def facts(folder: Path, name: str = "org/m", revision: str | None = None) -> ModelFacts:
    model = hub_model(name)
    assert model is not None
    return anyio.run(remote_facts, model, revision, folder / "own")


def test_a_model_is_told_without_its_weights(served: Hub, tmp_path: Path) -> None:
    files = content(sharded(tmp_path / "m")) | content(checkpoint(tmp_path / "n"))
    del files["model.safetensors"]
    push(served, files)
    found = facts(tmp_path)
    assert (found.format, found.architecture, found.context_length) == ("safetensors", "LlamaForCausalLM", 128)
    assert found.bytes == sum(len(data) for name, data in files.items() if name.endswith(".safetensors"))
    assert (found.faults, found.parameters) == ((), None)
    assert found.path == f"org/m@{COMMIT}"
    assert not [path for method, path, _ in served.asked if method == "GET" and path.endswith(".safetensors")]
    assert not any((tmp_path / "own").glob("**/*"))
    assert not list((tmp_path / "hf").rglob("config.json"))


def test_an_onnx_and_a_gguf_model_are_told_as_far_as_that_goes(served: Hub, tmp_path: Path) -> None:
    push(served, {"genai_config.json": json.dumps(GENAI).encode(), "model.onnx": onnx_model([onnx_node("A")])})
    found = facts(tmp_path)
    assert (found.format, found.context_length, found.faults) == ("onnx", 64, ())
    push(served, {"m.gguf": gguf(*PAIRS)})
    found = facts(tmp_path)
    assert (found.format, found.bytes, found.faults) == ("gguf", len(gguf(*PAIRS)), ())


def test_what_the_hub_does_not_have_or_tell_is_a_fault(
    served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert facts(tmp_path).faults[0].kind == "invalid_config"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    failure = facts(tmp_path).faults[0]
    assert (failure.kind, "HF_HUB_OFFLINE" in failure.what) == ("download_failed", True)


def test_inspect_takes_a_hub_id_with_a_revision(served: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path / "cache"))
    push(served, content(checkpoint(tmp_path / "n")))
    said, status = inspect_command(f"org/m@{COMMIT}", as_json=False)
    assert status == 0
    assert "its weights were not looked into" in said
    said, status = inspect_command("org/unknown", as_json=False)
    assert status == 1
    assert "There is no model 'org/unknown'" in said
