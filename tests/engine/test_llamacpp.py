import sys
from typing import Any

import pytest
from msgspec.structs import replace

from deploytui.engine.llamacpp import LlamaCpp
from deploytui.engine.protocol import Place, Probed
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import EngineFacts

ENGINE = LlamaCpp()
PLACE = Place(port=8123, model_path="/models/m.gguf", concurrency=4, context_tokens=300)
CPU = {"name": "CPU", "description": "a CPU", "type": 0}
GPU = {"name": "CUDA0", "description": "H100", "type": 1}
PLAIN = Candidate(name="a", engine="llamacpp", model="m.gguf")
BINARY = Candidate(name="a", engine="llamacpp", model="m.gguf", command=("/opt/llama-server",))


def options(argv: tuple[str, ...], flag: str) -> list[str]:
    return [argv[place + 1] for place, word in enumerate(argv) if word == flag]


def test_every_slot_gets_room_for_the_longest_request() -> None:
    launch = ENGINE.launch(PLAIN, PLACE)
    assert launch.argv[0] == sys.executable
    assert launch.argv[1].endswith("host/serve_xllamacpp.py")
    assert {"n_ctx=2048", "n_parallel=4"} <= set(options(launch.argv, "--set"))
    assert launch.base_url == "http://127.0.0.1:8123"
    assert launch.served_model == "a"


def test_max_model_len_is_per_request_whatever_the_slots() -> None:
    asked = replace(PLAIN, settings=Settings(max_model_len=1024, max_num_seqs=3))
    assert {"n_ctx=3072", "n_parallel=3"} <= set(options(ENGINE.launch(asked, PLACE).argv, "--set"))


def test_a_full_context_leaves_a_token_to_spare() -> None:
    full = replace(PLACE, context_tokens=512, concurrency=1)
    assert "n_ctx=768" in options(ENGINE.launch(PLAIN, full).argv, "--set")


def test_settings_reach_both_ways_to_start_it() -> None:
    settings = Settings(threads=2, gpu_layers=7, kv_cache_dtype="q8_0", prefix_cache=False)
    package = options(ENGINE.launch(replace(PLAIN, settings=settings), PLACE).argv, "--set")
    assert {"cpuparams.n_threads=2", "n_gpu_layers=7", "cache_type_k=q8_0", "cache_type_v=q8_0"} <= set(package)
    assert {"cache_prompt=false", "cache_ram_mib=0"} <= set(package)
    argv = ENGINE.launch(replace(BINARY, settings=settings), PLACE).argv
    assert argv[0] == "/opt/llama-server"
    assert options(argv, "--threads") == ["2"]
    assert options(argv, "--n-gpu-layers") == ["7"]
    assert options(argv, "--cache-type-k") == ["q8_0"]
    assert options(argv, "--host") == ["127.0.0.1"]
    assert options(argv, "--ctx-size") == ["2048"]


def test_the_prefix_cache_is_only_mentioned_when_asked() -> None:
    assert ENGINE.body(PLAIN) == {}
    assert ENGINE.body(replace(PLAIN, settings=Settings(prefix_cache=False))) == {"cache_prompt": False}


def test_own_arguments_come_last() -> None:
    assert ENGINE.launch(replace(PLAIN, args=("n_batch=64",)), PLACE).argv[-2:] == ("--set", "n_batch=64")
    assert ENGINE.launch(replace(BINARY, args=("--no-mmap",)), PLACE).argv[-1] == "--no-mmap"


def test_the_key_never_stands_in_argv() -> None:
    secret = replace(PLACE, api_key="s3cret")
    for candidate in (PLAIN, BINARY):
        launch = ENGINE.launch(candidate, secret)
        assert launch.env["LLAMA_API_KEY"] == "s3cret"
        assert not any("s3cret" in word for word in launch.argv)


def test_a_crash_never_starts_a_debugger_unless_asked() -> None:
    assert ENGINE.launch(PLAIN, PLACE).env["GGML_NO_BACKTRACE"] == "1"
    asked = replace(PLAIN, env={"GGML_NO_BACKTRACE": "0"})
    assert ENGINE.launch(asked, PLACE).env["GGML_NO_BACKTRACE"] == "0"


def test_cuda_puts_all_layers_on_the_gpu_and_cpu_hides_it() -> None:
    cuda = ENGINE.launch(replace(PLAIN, device="cuda"), replace(PLACE, gpu_uuids=("GPU-1", "GPU-2")))
    assert "n_gpu_layers=999" in options(cuda.argv, "--set")
    assert cuda.env["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    cpu = ENGINE.launch(replace(PLAIN, device="cpu"), PLACE)
    assert "n_gpu_layers=0" in options(cpu.argv, "--set")
    assert cpu.env["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"settings": Settings(tensor_parallel=2)}, "unsupported_setting"),
        ({"settings": Settings(cuda_graphs=False)}, "unsupported_setting"),
        ({"settings": Settings(memory_share=0.9)}, "unsupported_setting"),
        ({"settings": Settings(chunked_prefill=True)}, "unsupported_setting"),
        ({"settings": Settings(kv_cache_dtype="fp8")}, "unsupported_setting"),
        ({"settings": Settings(gpu_layers=3), "device": "cpu"}, "invalid_config"),
        ({"model": None}, "invalid_config"),
        ({"format": "safetensors"}, "unsupported_format"),
        ({"dtype": "bfloat16"}, "unsupported_dtype"),
        ({"args": ("--n-batch",)}, "invalid_config"),
        ({"base_url": "http://127.0.0.1:1"}, "invalid_config"),
        ({"command": ("a",), "python": "b"}, "invalid_config"),
        ({"command": ()}, "invalid_config"),
        ({"trust_remote_code": True}, "invalid_config"),
        ({"allow_pickle": True}, "invalid_config"),
    ],
)
def test_what_llamacpp_can_not_take_is_refused_before_launch(changes: dict[str, Any], kind: str) -> None:
    failure = ENGINE.objection(replace(PLAIN, **changes))
    assert failure is not None
    assert failure.kind == kind
    assert failure.fix


def test_what_llamacpp_can_take_is_not_refused() -> None:
    settings = Settings(max_model_len=64, tensor_parallel=1, kv_cache_dtype="auto", threads=1)
    assert ENGINE.objection(replace(PLAIN, settings=settings, args=("n_batch=8",), dtype="auto")) is None
    assert ENGINE.objection(replace(BINARY, args=("--flash-attn", "on"))) is None


def test_absence_names_the_interpreter_and_the_remedy() -> None:
    failure = ENGINE.judge(replace(PLAIN, python="/opt/py"), Probed(found=False))
    assert failure is not None
    assert failure.kind == "not_installed"
    assert "/opt/py" in failure.what
    assert "/opt/py -m pip install xllamacpp" in failure.fix


def test_an_absent_binary_is_told_with_its_path() -> None:
    failure = ENGINE.judge(BINARY, Probed(found=False, error="[Errno 2] No such file or directory"))
    assert failure is not None
    assert failure.kind == "not_installed"
    assert "/opt/llama-server" in failure.what
    assert "No such file" in failure.why


def test_cuda_is_never_fallen_back_from() -> None:
    asked = replace(PLAIN, device="cuda")
    bare = Probed(found=True, version="1", detail={"calls": {"xllamacpp:get_device_info": [CPU]}})
    failure = ENGINE.judge(asked, bare)
    assert failure is not None
    assert failure.kind == "wrong_device"
    assert ENGINE.judge(PLAIN, bare) is None
    able = Probed(found=True, version="1", detail={"calls": {"xllamacpp:get_device_info": [CPU, GPU]}})
    assert ENGINE.judge(asked, able) is None


def test_a_binary_without_cuda_devices_is_unsupported_and_a_silent_one_is_not_judged() -> None:
    asked = replace(BINARY, device="cuda")
    none = Probed(found=True, version="6000", detail={"output": "Available devices:\n"})
    failure = ENGINE.judge(asked, none)
    assert failure is not None
    assert failure.kind == "wrong_device"
    some = Probed(found=True, version="6000", detail={"output": "Available devices:\n  CUDA0: NVIDIA H100"})
    assert ENGINE.judge(asked, some) is None
    assert ENGINE.judge(asked, Probed(found=True, version="6000")) is None


def test_a_version_lock_is_held() -> None:
    failure = ENGINE.judge(replace(PLAIN, engine_version="==1.0"), Probed(found=True, version="2026.10.11549"))
    assert failure is not None
    assert failure.kind == "wrong_version"


def test_the_running_server_tells_slots_context_and_model() -> None:
    answers = {
        "/props": {
            "default_generation_settings": {"n_ctx": 1024},
            "total_slots": 2,
            "build_info": "b0-unknown",
        },
        "/v1/models": {"data": [{"id": "a", "meta": {"n_ctx_train": 8192, "n_params": 134515008, "ftype": "Q4_1"}}]},
    }
    facts = ENGINE.readback(EngineFacts(name="llamacpp", version="2026.10.11549"), answers)
    assert facts.settings["max_model_len"] == 1024
    assert facts.settings["max_num_seqs"] == 2
    assert facts.settings["model_n_ctx_train"] == 8192
    assert facts.kv_cache == {"slots": 2, "tokens_per_slot": 1024, "tokens": 2048}
    assert facts.version == "2026.10.11549"


def test_a_server_that_tells_nothing_or_nonsense_changes_nothing() -> None:
    facts = EngineFacts(name="llamacpp")
    assert ENGINE.readback(facts, {}) == facts
    assert ENGINE.readback(facts, {"/props": [1], "/v1/models": {"data": []}}) == facts
    assert ENGINE.readback(facts, {"/props": {"build_info": "b6000-abc"}}).version == "b6000-abc"
