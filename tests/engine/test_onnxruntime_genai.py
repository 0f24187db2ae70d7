"""ONNX Runtime GenAI: what it is told, what it refuses, and how a model is built for it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.engine.onnxruntime_genai import BUILDER_PACKAGES, OnnxRuntimeGenAI, precision_of
from deploytui.engine.protocol import Place, PreparationPlan, Probed
from deploytui.engine.registry import load_engine
from deploytui.profile.schema import Candidate, Prepare, Settings
from deploytui.record.facts import EngineFacts
from tests.engine.captured import after

ENGINE = OnnxRuntimeGenAI()
PLAIN = Candidate(name="a", engine="onnxruntime-genai", model="/models/m", python="/opt/py")
PLACE = Place(port=8123, model_path="/models/m", concurrency=4, context_tokens=300, api_key="s3cret")
BARE = Probed(found=True, version="0.18.0", detail={"calls": {"onnxruntime_genai:is_cuda_available": False}})


def finished(folder: Path, name: str) -> str:
    """An environment that setup-engine made, as far as can be seen from outside."""
    python = folder / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (folder / name / "ready.json").write_text("{}", encoding="utf-8")
    return str(python)


def plan(candidate: Candidate, source: str | None = "safetensors") -> PreparationPlan:
    made = ENGINE.preparation(candidate, source)
    assert made is not None
    return made


def test_it_is_the_engine_of_its_name() -> None:
    assert isinstance(load_engine("onnxruntime-genai"), OnnxRuntimeGenAI)


def test_the_host_is_told_slots_threads_context_and_device() -> None:
    asked = replace(PLAIN, device="cpu", settings=Settings(threads=2, max_model_len=512), args=("--batching", "turns"))
    launch = ENGINE.launch(asked, PLACE)
    assert launch.argv[0] == "/opt/py"
    assert Path(launch.argv[1]).name == "serve_onnx.py"
    told = after(launch.argv, "--threads", "--max-model-len", "--device", "--max-num-seqs", "--model", "--alias")
    assert told == ("2", "512", "cpu", "4", "/models/m", "a")
    assert launch.argv[-2:] == ("--batching", "turns")
    assert launch.env["CUDA_VISIBLE_DEVICES"] == ""


def test_slots_are_as_asked() -> None:
    one = replace(PLAIN, settings=Settings(max_num_seqs=1))
    assert after(ENGINE.launch(one, PLACE).argv, "--max-num-seqs") == ("1",)


def test_the_key_never_stands_in_argv() -> None:
    launch = ENGINE.launch(PLAIN, PLACE)
    assert launch.env["DEPLOYTUI_API_KEY"] == "s3cret"
    assert not any("s3cret" in word for word in launch.argv)


def test_a_gpu_candidate_gets_its_gpus_and_never_the_environment_for_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path))
    for_cpu = finished(tmp_path, "onnxruntime-genai")
    free = replace(PLAIN, python=None)
    assert ENGINE.launch(replace(free, device="cpu"), PLACE).argv[0] == for_cpu
    asked = replace(free, device="cuda")
    launch = ENGINE.launch(asked, replace(PLACE, gpu_uuids=("GPU-1",)))
    assert launch.argv[0] != for_cpu
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    for_gpu = finished(tmp_path, "onnxruntime-genai-cuda")
    assert ENGINE.launch(asked, PLACE).argv[0] == for_gpu


def test_the_probe_looks_for_both_distributions_and_asks_why_there_is_no_cuda_only_when_it_is_wanted() -> None:
    plain, cuda = ENGINE.probe(PLAIN), ENGINE.probe(replace(PLAIN, device="cuda"))
    assert plain is not None
    assert cuda is not None
    assert after(plain.argv, "--dist", "--module", "--call")[1:] == (
        "onnxruntime_genai",
        "onnxruntime_genai:is_cuda_available",
    )
    assert after(cuda.argv, "--dist") == ("onnxruntime-genai-cuda",)
    assert "--output-of" not in plain.argv
    assert json.loads(after(cuda.argv, "--output-of")[0])[0] == "/opt/py"


def test_cuda_is_never_fallen_back_from_and_the_reason_is_the_librarys() -> None:
    words = "Cuda interface not available: Failed to load library: libonnxruntime-genai-cuda.so"
    told = replace(BARE, detail={**BARE.detail, "output": f"a warning\n{words}\n"})
    failure = ENGINE.judge(replace(PLAIN, device="cuda"), told)
    assert failure is not None
    assert failure.kind == "wrong_device"
    assert failure.why == words
    assert "onnxruntime-genai-cuda" in failure.fix
    assert ENGINE.judge(PLAIN, BARE) is None
    assert ENGINE.judge(replace(PLAIN, device="cpu"), BARE) is None


def test_a_build_for_cuda_without_cudas_libraries_is_found_out() -> None:
    words = "Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared"
    available = {"calls": {"onnxruntime_genai:is_cuda_available": True}}
    told = Probed(found=True, version="0.18.0", detail={**available, "output": f"{words} object file\n"})
    failure = ENGINE.judge(replace(PLAIN, device="cuda"), told)
    assert failure is not None
    assert failure.kind == "wrong_device"
    assert "libcublasLt.so.13" in failure.why
    for output in (
        "",
        "\n",
        "[W:onnxruntime] GPU discovery failed: Failed to open file: /sys/class/drm/card0\n",
    ):
        fine = Probed(found=True, version="0.18.0", detail={**available, "output": output})
        assert ENGINE.judge(replace(PLAIN, device="cuda"), fine) is None


def test_absence_names_the_interpreter_and_the_command_that_installs_it() -> None:
    failure = ENGINE.judge(PLAIN, Probed(found=False))
    assert failure is not None
    assert failure.kind == "not_installed"
    assert "/opt/py" in failure.what
    assert "setup-engine onnxruntime-genai" in failure.fix


def test_a_version_lock_is_held() -> None:
    failure = ENGINE.judge(replace(PLAIN, engine_version="==0.17.*"), BARE)
    assert failure is not None
    assert failure.kind == "wrong_version"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"settings": Settings(tensor_parallel=2)}, "unsupported_setting"),
        ({"settings": Settings(memory_share=0.9)}, "unsupported_setting"),
        ({"settings": Settings(kv_cache_dtype="int8")}, "unsupported_setting"),
        ({"settings": Settings(prefix_cache=True)}, "unsupported_setting"),
        ({"settings": Settings(cuda_graphs=True)}, "unsupported_setting"),
        ({"prepare": Prepare(precision="int3")}, "invalid_config"),
        ({"command": ("serve",)}, "invalid_config"),
        ({"base_url": "http://127.0.0.1:1"}, "invalid_config"),
        ({"model": None}, "invalid_config"),
        ({"devices": 2}, "invalid_config"),
        ({"devices": ("GPU-1", "GPU-2")}, "invalid_config"),
        ({"format": "gguf"}, "unsupported_format"),
        ({"dtype": "fp8"}, "unsupported_dtype"),
        ({"dtype": "bfloat16", "device": "cpu"}, "unsupported_dtype"),
        ({"prepare": Prepare(precision="fp16")}, "unsupported_dtype"),
        ({"quantization": "exl2"}, "unsupported_quant"),
    ],
)
def test_what_it_can_not_take_is_refused_before_launch(changes: dict[str, Any], kind: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert failure.kind == kind
    assert failure.fix


def test_what_it_can_take_is_not_refused() -> None:
    settings = Settings(threads=1, max_num_seqs=2, max_model_len=64, tensor_parallel=1, prefix_cache=False)
    for format_ in (None, "onnx", "safetensors"):
        assert ENGINE.objection(replace(PLAIN, settings=settings, format=format_, quantization="int4")) is None
    assert ENGINE.objection(replace(PLAIN, dtype="bfloat16", device="cuda")) is None
    assert ENGINE.objection(replace(PLAIN, dtype="bfloat16", prepare=Prepare(precision="int4"))) is None


@pytest.mark.parametrize(
    ("changes", "precision"),
    [
        ({}, "int4"),
        ({"dtype": "bfloat16"}, "bf16"),
        ({"dtype": "float16"}, "fp16"),
        ({"dtype": "auto"}, "int4"),
        ({"quantization": "int8", "dtype": "float16"}, "int8"),
        ({"prepare": Prepare(precision="fp32"), "quantization": "int8"}, "fp32"),
        ({"quantization": "awq"}, "int4"),
    ],
)
def test_the_precision_is_the_one_named_nearest_to_the_build(changes: dict[str, Any], precision: str) -> None:
    assert precision_of(replace(PLAIN, **changes)) == precision
    assert plan(replace(PLAIN, **changes)).name == f"onnx {precision}"


def test_weights_are_built_into_onnx_where_torch_is_and_without_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path))
    python = finished(tmp_path, "transformers")
    made = plan(PLAIN)
    assert made.argv[:3] == (python, "-m", "onnxruntime_genai.models.builder")
    assert after(made.argv, "-i", "-o", "-p", "-e") == ("{model}", "{out}", "int4", "cpu")
    assert made.env["HF_HUB_OFFLINE"] == "1"
    assert (made.format, made.packages) == ("onnx", BUILDER_PACKAGES)


def test_the_build_follows_device_interpreter_and_further_words() -> None:
    asked = Prepare(python="/opt/build", args=("--extra_options", "block_size=64"))
    made = plan(replace(PLAIN, device="cuda", prepare=asked))
    assert made.argv[0] == "/opt/build"
    assert after(made.argv, "-e") == ("cuda",)
    assert made.argv[-2:] == ("--extra_options", "block_size=64")
    trusted = plan(replace(PLAIN, prepare=asked, trust_remote_code=True)).argv
    assert trusted[-3:] == ("--extra_options", "hf_remote=true", "block_size=64")
    assert plan(replace(PLAIN, trust_remote_code=True)).argv[-2:] == ("--extra_options", "hf_remote=true")


@pytest.mark.parametrize("source", ["onnx", "gguf", "tensorrt", None])
def test_what_is_onnx_or_can_not_become_it_is_not_built(source: str | None) -> None:
    assert ENGINE.preparation(PLAIN, source) is None


def test_the_host_tells_context_slots_batching_and_versions() -> None:
    props = {
        **{"engine": "onnxruntime-genai", "version": "0.18.0", "versions": {"onnxruntime": "1.32.0"}},
        **{"batching": "none: one", "slots": 2, "context_length": 8192, "device": "cpu", "threads": None},
    }
    facts = ENGINE.readback(EngineFacts(name="onnxruntime-genai"), {"/props": props})
    assert (facts.version, facts.device) == ("0.18.0", "cpu")
    assert facts.settings["max_model_len"] == 8192
    assert facts.settings["max_num_seqs"] == 2
    assert facts.settings["batching"] == "none: one"
    assert "threads" not in facts.settings
    assert ENGINE.readback(facts, {"/props": None}) == facts
