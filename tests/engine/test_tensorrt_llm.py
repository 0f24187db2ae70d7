import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.engine.adapter import host_script
from deploytui.engine.protocol import Place, Probed
from deploytui.engine.tensorrt_llm import TensorRtLlm
from deploytui.profile.schema import Candidate, Container, Prepare, Settings
from deploytui.record.facts import EngineFacts

ENGINE = TensorRtLlm()
PLACE = Place(port=8123, model_path="/models/m", concurrency=4, context_tokens=300)
PLAIN = Candidate(name="a", engine="tensorrt-llm", model="/models/m", command=("/opt/trtllm-serve",))
START = ("/opt/trtllm-serve", "/models/m", "--host", "127.0.0.1", "--port", "8123")
DRIVER = "libcuda.so.1: cannot open shared object file: No such file or directory"


def more(**changes: Any) -> tuple[str, ...]:
    """What a changed candidate has in its argv beyond the plain one's."""
    argv = ENGINE.launch(replace(PLAIN, **changes), PLACE).argv
    assert argv[: len(START)] == START
    return argv[len(START) :]


def test_it_lists_a_local_model_by_the_name_of_its_folder() -> None:
    launch = ENGINE.launch(PLAIN, replace(PLACE, api_key="s3cret", gpu_uuids=("GPU-1",)))
    assert launch.argv == START
    assert launch.served_model == "m"
    assert "s3cret" not in str(launch)
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    hub = ENGINE.launch(replace(PLAIN, model="org/m"), replace(PLACE, model_path=None))
    assert hub.served_model == "org/m"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(max_model_len=8192), ("--max_seq_len", "8192")),
        (Settings(tensor_parallel=4), ("--tp_size", "4")),
        (Settings(pipeline_parallel=2), ("--pp_size", "2")),
        (Settings(memory_share=0.8), ("--kv_cache_free_gpu_memory_fraction", "0.8")),
        (Settings(max_num_seqs=64), ("--max_batch_size", "64")),
        (Settings(chunked_prefill=True), ("--enable_chunked_prefill",)),
        (Settings(chunked_prefill=False), ()),
    ],
)
def test_each_setting_has_its_word(settings: Settings, words: tuple[str, ...]) -> None:
    assert more(settings=settings) == words


def test_an_engine_folder_is_served_by_the_engine_backend() -> None:
    assert more(format="tensorrt") == ("--backend", "tensorrt")
    assert more(trust_remote_code=True, args=("--config", "more.yaml")) == (
        "--trust_remote_code",
        "--config",
        "more.yaml",
    )


@pytest.mark.parametrize(
    ("changes", "kind", "told"),
    [
        ({"settings": Settings(prefix_cache=False)}, "unsupported_setting", "enable_block_reuse"),
        ({"settings": Settings(cuda_graphs=False)}, "unsupported_setting", "cuda_graph_config"),
        ({"settings": Settings(kv_cache_dtype="fp8")}, "unsupported_setting", "kv_cache_config"),
        ({"settings": Settings(data_parallel=2)}, "unsupported_setting", "data_parallel"),
        ({"device": "cpu"}, "wrong_device", "cpu"),
        ({"format": "gguf"}, "unsupported_format", "gguf"),
        ({"dtype": "float16"}, "unsupported_dtype", "float16"),
        ({"model": None}, "invalid_config", "model"),
        ({"python": "/opt/py"}, "invalid_config", "command and python"),
        ({"command": ()}, "invalid_config", "command"),
    ],
)
def test_what_it_can_not_take_is_refused_with_the_way_out(changes: dict[str, Any], kind: str, told: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert failure.kind == kind
    assert told in failure.what


@pytest.mark.parametrize(
    ("probed", "kind", "why"),
    [
        (Probed(found=False, error="no program trtllm-serve"), "not_installed", "no program"),
        (Probed(found=True, error=DRIVER, detail={"failed": "driver"}), "wrong_device", "libcuda.so.1"),
        (Probed(found=True, error="the newest GPU has 7.5", detail={"failed": "capability"}), "wrong_device", "7.5"),
        (Probed(found=True, error="OSError: libmpi.so.40", detail={"failed": "import"}), "broken_install", "libmpi"),
    ],
)
def test_the_first_need_that_is_not_met_is_the_reason(probed: Probed, kind: str, why: str) -> None:
    failure = ENGINE.judge(PLAIN, probed)
    assert failure is not None
    assert failure.kind == kind
    assert why in failure.why
    assert failure.fix


def test_a_version_lock_is_held() -> None:
    locked = replace(PLAIN, engine_version=">=1.2")
    failure = ENGINE.judge(locked, Probed(found=True, version="1.1.0"))
    assert failure is not None
    assert failure.kind == "wrong_version"
    assert ENGINE.judge(locked, Probed(found=True, version="1.2.1")) is None


def probed_here(*words: str) -> dict[str, Any]:
    """What its probe tells of this node, run as the runner would."""
    script = host_script("probe_tensorrt_llm.py")
    ran = subprocess.run([sys.executable, script, *words], capture_output=True, check=True, timeout=60)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def test_the_probe_tells_absence_before_it_asks_for_a_gpu() -> None:
    answer = probed_here()
    assert answer["found"] is False
    assert "trtllm-serve" in answer["error"]


def test_the_probe_names_the_library_that_is_missing() -> None:
    answer = probed_here("--program", "python3")
    assert answer["found"] is True
    if answer["detail"].get("failed") == "driver":
        assert "libcuda.so.1" in answer["error"] or "NVML" in answer["error"] or "libnvidia" in answer["error"]


def test_an_image_is_asked_for_packages_alone() -> None:
    contained = replace(PLAIN, command=None, container=Container(image="nvcr.io/nvidia/tensorrt-llm/release:1.2.1"))
    assert ENGINE.objection(contained) is None
    probe = ENGINE.probe(contained)
    assert probe is not None
    assert probe.argv[0] == "python3"
    assert "--packages-only" in probe.argv
    assert ENGINE.launch(contained, PLACE).argv[0] == "trtllm-serve"
    assert "failed" not in probed_here("--program", "python3", "--packages-only")["detail"]


def test_a_named_interpreter_brings_its_own_program() -> None:
    assert ENGINE.launch(replace(PLAIN, command=None, python="/opt/trt/bin/python"), PLACE).argv[0] == (
        "/opt/trt/bin/trtllm-serve"
    )


def test_an_engine_is_built_from_a_checkpoint_where_one_is_asked_for() -> None:
    asked = replace(
        PLAIN,
        format="tensorrt",
        command=None,
        python="/opt/trt/bin/python",
        settings=Settings(max_num_seqs=8, max_model_len=2048, tensor_parallel=2),
        prepare=Prepare(precision="bfloat16", args=("--gemm_plugin", "auto")),
    )
    plan = ENGINE.preparation(asked, "safetensors")
    assert plan is not None
    assert plan.argv[0] == "/opt/trt/bin/python"
    assert plan.argv[2:] == (
        *("--model", "{model}", "--out", "{out}", "--dtype", "bfloat16", "--max_batch_size", "8"),
        *("--max_seq_len", "2048", "--tp_size", "2", "--gemm_plugin", "auto"),
    )
    assert plan.scripts == (plan.argv[1],)
    assert plan.format == "tensorrt"
    assert ENGINE.preparation(asked, "tensorrt") is None
    assert ENGINE.preparation(PLAIN, "safetensors") is None


def checkpoint(folder: Path, **config: Any) -> Path:
    """A folder with a config and a tokenizer."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def build(model: Path, out: Path, bin_dir: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The build script, with programs of a folder first on its path."""
    argv = [sys.executable, host_script("build_tensorrt_llm.py"), "--model", str(model), "--out", str(out), *words]
    env = {**os.environ, "PATH": f"{bin_dir}:{os.environ['PATH']}"}
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, env=env)


def test_a_converted_checkpoint_goes_to_trtllm_build_and_its_tokenizer_beside_the_engine(tmp_path: Path) -> None:
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    program = bin_dir / "trtllm-build"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/said\n', encoding="utf-8")
    program.chmod(0o755)
    model = checkpoint(tmp_path / "model", architecture="LlamaForCausalLM", mapping={"tp_size": 1})
    out = tmp_path / "out"
    ran = build(model, out, bin_dir, "--max_batch_size", "8", "--gemm_plugin", "auto")
    assert ran.returncode == 0, ran.stderr
    said = (tmp_path / "said").read_text(encoding="utf-8").strip()
    assert said == f"--checkpoint_dir {model} --output_dir {out} --max_batch_size 8 --gemm_plugin auto"
    assert sorted(path.name for path in out.iterdir()) == ["tokenizer.json"]


def test_a_hub_checkpoint_needs_the_package_and_takes_no_words_of_trtllm_build(tmp_path: Path) -> None:
    model = checkpoint(tmp_path / "model", architectures=["LlamaForCausalLM"])
    refused = build(model, tmp_path / "out", tmp_path, "--gemm_plugin", "auto")
    assert refused.returncode == 2
    assert "no TensorRT-LLM checkpoint" in refused.stderr
    absent = build(model, tmp_path / "out", tmp_path)
    assert absent.returncode != 0
    assert "No module named 'tensorrt_llm'" in absent.stderr


def test_the_running_server_tells_version_and_blocks() -> None:
    stats = {"iter": 60, "kvCacheStats": {"usedNumBlocks": 3, "maxNumBlocks": 10, "tokensPerBlock": 32}}
    facts = ENGINE.readback(EngineFacts(name="t"), {"/version": {"version": "1.2.1"}, "/metrics": [{"iter": 1}, stats]})
    assert facts.version == "1.2.1"
    assert facts.kv_cache == {"blocks": 10, "block_tokens": 32, "tokens": 320}
    assert ENGINE.readback(EngineFacts(name="t"), {"/metrics": []}).kv_cache == {}


def test_its_log_tells_the_cache_and_the_limits() -> None:
    lines = [
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.56 GiB for max tokens in paged KV cache (8224).",
        "[TRT-LLM] [I] max_seq_len=8224, max_num_requests=64, max_num_tokens=8192, max_batch_size=64",
    ]
    facts = ENGINE.readlog(EngineFacts(name="t"), lines)
    assert facts.kv_cache == {"bytes": round(0.56 * 2**30), "tokens": 8224}
    assert facts.settings == {"max_model_len": 8224, "max_num_seqs": 64}
