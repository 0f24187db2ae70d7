from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deploytui.engine.protocol import Place, Probed
from deploytui.engine.sglang import MODULE, Sglang
from deploytui.profile.schema import Candidate, Container, Settings
from deploytui.record.facts import EngineFacts
from tests.engine.captured import answer, body, log

ENGINE = Sglang()
CAPTURED = "sglang-0.5.23-cpu"
PLACE = Place(port=8123, model_path="/models/m", concurrency=4, context_tokens=300)
PLAIN = Candidate(name="a", engine="sglang", model="/models/m", python="/opt/py")
START = (
    *("/opt/py", "-m", MODULE, "--model-path", "/models/m", "--served-model-name", "a"),
    *("--host", "127.0.0.1", "--port", "8123", "--enable-metrics", "--enable-cache-report"),
)


def more(**changes: Any) -> tuple[str, ...]:
    """What a changed candidate has in its argv beyond the plain one's."""
    argv = ENGINE.launch(replace(PLAIN, **changes), PLACE).argv
    assert argv[: len(START)] == START
    return argv[len(START) :]


def test_it_is_started_as_a_module_with_its_metrics_on() -> None:
    launch = ENGINE.launch(PLAIN, PLACE)
    assert launch.argv == START
    assert launch.served_model == "a"
    assert launch.env["HF_HUB_OFFLINE"] == "1"


def test_a_server_does_not_wait_for_core_dumps_unless_that_is_asked_for() -> None:
    name = "SGLANG_CUDA_COREDUMP_BEFORE_CRASH"
    assert ENGINE.launch(PLAIN, PLACE).env[name] == "0"
    assert ENGINE.launch(replace(PLAIN, env={name: "1"}), PLACE).env[name] == "1"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(max_model_len=8192), ("--context-length", "8192")),
        (Settings(tensor_parallel=4), ("--tp-size", "4")),
        (Settings(pipeline_parallel=2), ("--pp-size", "2")),
        (Settings(data_parallel=2), ("--dp-size", "2")),
        (Settings(memory_share=0.85), ("--mem-fraction-static", "0.85")),
        (Settings(max_num_seqs=64), ("--max-running-requests", "64")),
        (Settings(kv_cache_dtype="fp8_e5m2"), ("--kv-cache-dtype", "fp8_e5m2")),
        (Settings(prefix_cache=False), ("--disable-radix-cache",)),
        (Settings(prefix_cache=True), ()),
        (Settings(cuda_graphs=False), ("--disable-cuda-graph",)),
        (Settings(chunked_prefill=False), ("--chunked-prefill-size", "-1")),
    ],
)
def test_each_setting_has_its_word(settings: Settings, words: tuple[str, ...]) -> None:
    assert more(settings=settings) == words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "gguf"}, ("--load-format", "gguf")),
        ({"dtype": "bfloat16"}, ("--dtype", "bfloat16")),
        ({"quantization": "fp8"}, ("--quantization", "fp8")),
        ({"trust_remote_code": True}, ("--trust-remote-code",)),
        ({"device": "cuda"}, ("--device", "cuda")),
        ({"device": "cpu"}, ("--device", "cpu")),
        ({"args": ("--attention-backend", "fa3")}, ("--attention-backend", "fa3")),
    ],
)
def test_artifact_device_and_own_arguments_follow(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    assert more(**changes) == words


def test_it_is_given_no_key_which_it_would_show_to_everyone() -> None:
    launch = ENGINE.launch(PLAIN, replace(PLACE, api_key="s3cret"))
    assert "s3cret" not in str(launch)


def test_gpus_and_threads_go_by_environment() -> None:
    asked = replace(PLAIN, device="cuda", settings=Settings(threads=2))
    env = ENGINE.launch(asked, replace(PLACE, gpu_uuids=("GPU-1",))).env
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert env["OMP_NUM_THREADS"] == "2"
    cpu = ENGINE.launch(replace(PLAIN, device="cpu"), PLACE).env
    assert cpu["CUDA_VISIBLE_DEVICES"] == ""
    assert cpu["SGLANG_USE_CPU_ENGINE"] == "1"


def test_absent_locked_and_found() -> None:
    absent = ENGINE.judge(PLAIN, Probed(found=False))
    assert absent is not None
    assert absent.kind == "not_installed"
    assert "setup-engine sglang" in absent.fix
    locked = replace(PLAIN, engine_version="==0.5.23")
    other = ENGINE.judge(locked, Probed(found=True, version="0.5.22"))
    assert other is not None
    assert other.kind == "wrong_version"
    assert ENGINE.judge(locked, Probed(found=True, version="0.5.23")) is None


def test_in_an_image_its_own_interpreter_is_used() -> None:
    contained = replace(PLAIN, python=None, container=Container(image="lmsysorg/sglang:v0.5.23"))
    assert ENGINE.objection(contained) is None
    assert ENGINE.launch(contained, PLACE).argv[0] == "python3"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"settings": Settings(gpu_layers=3)}, "unsupported_setting"),
        ({"settings": Settings(kv_cache_dtype="fp8")}, "unsupported_setting"),
        ({"format": "onnx"}, "unsupported_format"),
        ({"model": None}, "invalid_config"),
        ({"command": ("sglang", "serve")}, "invalid_config"),
    ],
)
def test_what_sglang_can_not_take_is_refused_before_launch(changes: dict[str, Any], kind: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert failure.kind == kind


def test_the_recorded_server_tells_its_context_and_prefix_cache() -> None:
    answers = {"/model_info": answer(CAPTURED, "model_info"), "/v1/models": answer(CAPTURED, "models")}
    facts = ENGINE.readback(EngineFacts(name="sglang", served_model="smollm2"), answers)
    assert facts.settings == {"max_model_len": 1024, "prefix_cache": False}


def test_the_servers_own_arguments_are_read_and_its_key_is_not() -> None:
    info = {
        "api_key": "s3cret",
        "admin_api_key": "s3cret",
        "version": "0.5.23",
        "tp_size": 2,
        "mem_fraction_static": 0.87,
        "context_length": None,
        "disable_radix_cache": False,
        "chunked_prefill_size": 8192,
        "attention_backend": "fa3",
        "max_total_num_tokens": 400_000,
        "internal_states": [{"api_key": "s3cret"}],
    }
    facts = ENGINE.readback(EngineFacts(name="sglang"), {"/server_info": info})
    assert facts == ENGINE.readback(EngineFacts(name="sglang"), {"/server_info": None, "/get_server_info": info})
    assert facts.version == "0.5.23"
    assert facts.settings == {
        "tensor_parallel": 2,
        "memory_share": 0.87,
        "attention_backend": "fa3",
        "chunked_prefill_size": 8192,
        "prefix_cache": True,
        "chunked_prefill": True,
    }
    assert facts.kv_cache == {"tokens": 400_000}
    assert "s3cret" not in str(facts)


def test_the_recorded_log_tells_how_it_started() -> None:
    facts = ENGINE.readlog(EngineFacts(name="sglang"), log(CAPTURED, "startup"))
    assert facts.kv_cache["tokens"] == 8192
    assert facts.settings["max_model_len"] == 1024
    assert facts.settings["max_num_seqs"] == 4096
    assert facts.settings["weights_load_s"] == 0.31
    assert facts.settings["attention_backend"] == "torch_native"
    assert facts.settings["prefix_cache"] is False
    assert facts.settings["cuda_graphs"] is False
    assert facts.settings["memory_share"] == 0.716
    assert "quantization" not in facts.settings


def test_the_recorded_arguments_and_metrics_tell_the_cache_to_the_byte() -> None:
    answers = {"/server_info": answer(CAPTURED, "server_info"), "/metrics": body(CAPTURED, "metrics")}
    facts = ENGINE.readback(EngineFacts(name="sglang"), answers)
    assert facts.version == "0.5.23"
    # a place for each token and one that padding uses: 30 layers, 3 heads of 64, keys and values of 2 bytes
    assert facts.kv_cache == {"tokens": 8192, "bytes": 8193 * 30 * 3 * 64 * 2 * 2}
    assert facts.settings["max_model_len"] == 512
    assert facts.settings["max_num_seqs"] == 2
    assert facts.settings["dtype"] == "bfloat16"
    assert facts.settings["cuda_graphs"] is False
    assert "kv_cache_dtype" not in facts.settings  # it says "auto"
    logged = ENGINE.readlog(facts, log(CAPTURED, "startup"))
    assert logged.kv_cache == facts.kv_cache
    assert logged.settings["kv_cache_dtype"] == "bfloat16"


def test_what_the_whole_node_had_less_of_is_not_the_size_of_the_weights() -> None:
    told = "Load weight end. elapsed=0.31 s, type=LlamaForCausalLM, avail mem=19.66 GB, mem usage=0.27 GB."
    on_gpu = ENGINE.readlog(EngineFacts(name="sglang", device="cuda"), [told])
    assert on_gpu.settings["weights_bytes"] == round(0.27 * (1 << 30))
    on_cpu = ENGINE.readlog(EngineFacts(name="sglang", device="cpu"), [told])
    assert on_cpu.settings == {"weights_load_s": 0.31}
    assert "weights_bytes" not in ENGINE.readlog(EngineFacts(name="sglang"), log(CAPTURED, "startup")).settings
    freed = ENGINE.readlog(EngineFacts(name="sglang", device="cuda"), [told.replace("=0.27", "=-0.02")])
    assert freed.settings == {"weights_load_s": 0.31}


@pytest.mark.parametrize(
    ("sizes", "cache"),
    [
        ("K size: 0.09 GB, V size: 0.09 GB", {"bytes": 2 * round(0.09 * (1 << 30))}),
        ("KV size: 1.50 GB", {"bytes": 3 << 29}),
        ("K size: 0.00 GB, V size: 0.00 GB", {}),
    ],
)
def test_the_size_of_the_cache_is_read_from_the_log_where_nothing_else_tells_it(
    sizes: str, cache: dict[str, int]
) -> None:
    line = f"KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 8192, {sizes}"
    facts = ENGINE.readlog(EngineFacts(name="sglang"), [line])
    assert facts.kv_cache == cache
    assert facts.settings == {"kv_cache_dtype": "float8_e4m3fn"}


@given(st.dictionaries(st.sampled_from(["tp_size", "version", "max_total_num_tokens"]), st.none() | st.text()))
def test_junk_answers_are_tolerated(info: dict[str, Any]) -> None:
    assert ENGINE.readback(EngineFacts(name="sglang"), {"/get_server_info": info}).name == "sglang"


@given(st.lists(st.text() | st.sampled_from(["server_args={'tp_size': ", "max_total_num_tokens=", "Load weight end."])))
def test_any_log_can_be_read(lines: list[str]) -> None:
    assert ENGINE.readlog(EngineFacts(name="sglang"), lines).name == "sglang"
