import sys
from pathlib import Path

import pytest

from deploytui.engine.cause import WHY_LENGTH
from deploytui.engine.failures import RULES, explain_exit, explain_log, status_of

LOGS = Path(__file__).parent.parent / "data" / "logs"

LLAMACPP = "llamacpp-server-xllamacpp-2026.10.11549"
BINDINGS = "llama-cpp-python-0.3.36"
VLLM = "vllm-0.32.0-cpu"
SGLANG = "sglang-0.5.23-cpu"
SGLANG_BARE = "sglang-0.5.23-nogpu"
TRANSFORMERS = "transformers-5.24.0"
ORT = "onnxruntime-genai-0.18.0"

KNOWN = [
    (LLAMACPP, "err_load_missing", "missing_file", "load_failed", "failed to open GGUF file"),
    (LLAMACPP, "err_load_truncated", "corrupt", "load_failed", "data is not within the file bounds"),
    (LLAMACPP, "err_load_not-a-gguf", "corrupt", "load_failed", "invalid magic characters: '????', expected 'GGUF'"),
    (LLAMACPP, "err_load_empty", "corrupt", "load_failed", "failed to read magic"),
    (LLAMACPP, "err_load_truncated-header", "corrupt", "load_failed", "failed to read key-value pairs"),
    (LLAMACPP, "err_load_version99", "unsupported_format", "unsupported", "this GGUF file is version 99"),
    (LLAMACPP, "err_load_unsupported-arch", "unsupported_arch", "unsupported", "unknown model architecture: 'zzama'"),
    (LLAMACPP, "err_oom_ctx1M", "oom", "load_failed", "insufficient memory (attempted to allocate 43948.12 MB)"),
    (LLAMACPP, "err_oom_ulimit_300000k", "oom", "load_failed", "ggml_aligned_malloc: insufficient memory"),
    (LLAMACPP, "err_port_in_use", "port_in_use", "load_failed", "couldn't bind HTTP server socket"),
    (BINDINGS, "err_load_missing", "missing_file", "load_failed", "ValueError: Model path does not exist: /models"),
    (BINDINGS, "err_load_not-a-gguf", "corrupt", "load_failed", "invalid magic characters"),
    (BINDINGS, "err_load_truncated", "corrupt", "load_failed", "model is corrupted or incomplete"),
    (BINDINGS, "err_load_unsupported-arch", "unsupported_arch", "unsupported", "unknown model architecture: 'zzama'"),
    (VLLM, "err_load_missing_path", "missing_file", "load_failed", "Repo id must be in the form"),
    (VLLM, "err_load_unsupported_arch", "unsupported_arch", "unsupported", "does not recognize this architecture"),
    (VLLM, "err_load_unsupported_arch_vllm", "unsupported_arch", "unsupported", "are not supported for now"),
    (VLLM, "err_load_truncated_safetensors", "corrupt", "load_failed", "SafetensorError"),
    (VLLM, "err_load_bad_config_json", "corrupt", "load_failed", "config.json' is not a valid JSON file"),
    (VLLM, "err_load_max_model_len", "invalid_config", "invalid_config", "User-specified max_model_len (100000)"),
    (VLLM, "err_oom_kvcache_too_small", "oom", "load_failed", "estimated maximum model length is 46464"),
    (VLLM, "err_oom_kvcache_too_big", "oom", "load_failed", "less than requested memory for kv (400.0 GiB)"),
    (VLLM, "err_port_in_use", "port_in_use", "load_failed", "Address already in use"),
    (VLLM, "err_missing_dependency", "broken_install", "unsupported", "No module named 'llguidance'"),
    (VLLM, "err_cli_package_metadata", "broken_install", "unsupported", "No package metadata was found for vllm"),
    ("vllm-0.33.0-cuda-nogpu", "err_serve_no_gpu", "wrong_device", "unsupported", "Failed to infer device type"),
    (SGLANG, "err_load_missing_path", "missing_file", "load_failed", "Repo id must be in the form"),
    (SGLANG, "err_load_unsupported_arch", "unsupported_arch", "unsupported", "does not recognize this architecture"),
    (SGLANG, "err_load_unsupported_arch_sglang", "unsupported_arch", "unsupported", "'ZzamaForCausalLM' is not"),
    (SGLANG, "err_load_truncated_safetensors", "corrupt", "load_failed", "SafetensorError"),
    (SGLANG, "err_oom_mem_fraction", "oom", "load_failed", "leave no GPU memory for the KV cache"),
    (SGLANG, "err_context_longer_than_model", "invalid_config", "invalid_config", "User-specified context_length"),
    (SGLANG, "err_port_in_use", "port_in_use", "load_failed", "[Errno 98] error while attempting to bind"),
    (SGLANG_BARE, "err_import_srt", "broken_install", "unsupported", "No module named 'triton'"),
    (SGLANG_BARE, "err_launch_1_minimal_deps", "broken_install", "unsupported", "No module named 'triton'"),
    (SGLANG_BARE, "err_launch_2_cpu_no_kernel", "broken_install", "unsupported", "No module named 'torchvision'"),
    (SGLANG_BARE, "err_launch_2_default_no_kernel", "broken_install", "unsupported", "No module named 'torchvision'"),
    (SGLANG_BARE, "err_launch_3_full_install_default", "wrong_device", "unsupported", "No accelerator (CUDA"),
    (SGLANG_BARE, "err_launch_3_full_install_device_cpu", "broken_install", "unsupported", "No module named 'vllm'"),
    (SGLANG_BARE, "err_launch_4_cpu_engine_env", "broken_install", "unsupported", "Could not load any common_ops"),
    (SGLANG_BARE, "err_import_sgl_kernel", "broken_install", "unsupported", "Could not load any common_ops"),
    (TRANSFORMERS, "err_load_missing_path", "missing_file", "load_failed", "Repo id must be in the form"),
    (TRANSFORMERS, "err_load_unsupported_arch", "unsupported_arch", "unsupported", "model type `zzama`"),
    (TRANSFORMERS, "err_load_gguf_unsupported_arch", "unsupported_arch", "unsupported", "architecture zzama is not"),
    (TRANSFORMERS, "err_load_truncated_safetensors", "corrupt", "load_failed", "SafetensorError"),
    (TRANSFORMERS, "err_load_gguf_truncated", "corrupt", "load_failed", "cannot reshape array of size 66784"),
    (TRANSFORMERS, "err_load_no_weights", "missing_file", "load_failed", "Error no file named model.safetensors"),
    (TRANSFORMERS, "err_oom_ulimit_1600000k", "oom", "load_failed", "DefaultCPUAllocator: can't allocate memory"),
    (TRANSFORMERS, "err_cuda_requested_no_gpu", "wrong_device", "unsupported", "Torch not compiled with CUDA"),
    (ORT, "err_load_missing", "missing_file", "load_failed", "Error opening /models/no-such-dir/genai_config.json"),
    (ORT, "err_load_truncated", "corrupt", "load_failed", "are out of bounds or can not be read in full"),
    (ORT, "err_load_unsupported_arch", "unsupported_arch", "unsupported", "Unsupported model_type in config.json"),
    (ORT, "err_build_unsupported_arch", "unsupported_arch", "unsupported", "unsup-arch2 model is not currently"),
    (ORT, "err_oom_ulimit_550000k", "oom", "load_failed", "std::bad_alloc"),
    (ORT, "err_oom_ulimit_700000k", "oom", "load_failed", "std::bad_alloc"),
    (ORT, "err_context_too_long", "invalid_config", "invalid_config", "cannot be greater than model context_length"),
    (ORT, "err_cuda_provider_no_gpu", "wrong_device", "unsupported", "Cuda interface not available"),
    ("tensorrt-llm-1.2.1-nogpu", "pip_install_error", "not_installed", "unsupported", "InstallFailedError"),
]
RAN_WELL = [(TRANSFORMERS, "err_load_unsupported_class"), (TRANSFORMERS, "err_oom_ulimit_2000000k")]


def lines(folder: str, name: str) -> list[str]:
    return (LOGS / folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()


@pytest.mark.parametrize(("folder", "name", "kind", "status", "words"), KNOWN)
def test_a_recorded_failure_has_its_kind_status_and_the_engines_own_line(
    folder: str, name: str, kind: str, status: str, words: str
) -> None:
    log = lines(folder, name)
    failure = explain_log(log)
    assert failure is not None
    assert (failure.kind, status_of(failure.kind)) == (kind, status)
    assert words in failure.why
    assert any(failure.why.strip("…") in line for line in log)
    assert failure.what
    assert failure.fix
    assert "{" not in failure.what + failure.fix


@pytest.mark.parametrize(("folder", "name"), RAN_WELL)
def test_a_log_of_a_run_that_went_well_explains_nothing(folder: str, name: str) -> None:
    assert explain_log(lines(folder, name)) is None


def test_logs_of_engines_that_serve_explain_nothing_and_neither_do_those_of_killed_ones() -> None:
    found = sorted([*LOGS.glob("*/startup*.log"), *LOGS.glob("*/killed*.log")])
    assert len(found) >= 7
    served = {path: path.read_text("utf-8", "replace").partition("Subprocess scheduler_0")[0] for path in found}
    assert [path for path, text in served.items() if explain_log(text.splitlines())] == []


def test_every_recorded_failure_is_looked_at_and_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    known = {(folder, name) for folder, name, *_ in KNOWN}
    found = {(path.parent.name, path.stem) for path in LOGS.glob("*/err_*.log")} - set(RAN_WELL)
    recognised = [each for each in found if explain_log(lines(*each))]
    with capsys.disabled():
        sys.stdout.write(f"\nrecognised {len(recognised)} of {len(found)} recorded failures\n")
    assert found <= known
    assert len(recognised) == len(found)


def test_the_numbers_of_the_engine_become_the_remedy() -> None:
    small = explain_log(lines(VLLM, "err_oom_kvcache_too_small"))
    share = explain_log(lines(SGLANG, "err_oom_mem_fraction"))
    context = explain_log(lines(VLLM, "err_load_max_model_len"))
    assert small is not None
    assert share is not None
    assert context is not None
    assert "46464" in small.fix
    assert "0.218" in share.fix
    assert "8192" in context.fix


def test_the_first_root_cause_counts_not_the_generic_last_line() -> None:
    log = [
        *(f"(EngineCore_0 pid=1) INFO line {number}" for number in range(60)),
        "(EngineCore_0 pid=1) ERROR ValueError: Free memory on device (7.34/139.72 GiB) on startup is less than "
        "desired GPU memory utilization (0.9, 125.75 GiB).",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    failure = explain_log(log)
    assert failure is not None
    assert failure.kind == "oom"
    assert "7.34/139.72 GiB" in failure.why
    assert "memory_share" in failure.fix


def test_an_older_wording_of_too_little_cache_gives_the_same_remedy() -> None:
    line = (
        "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be "
        "stored in KV cache (39024). Try increasing `gpu_memory_utilization`"
    )
    failure = explain_log([line])
    assert failure is not None
    assert failure.kind == "oom"
    assert "39024" in failure.fix


def test_out_of_memory_while_graphs_are_captured_has_a_remedy_of_its_own() -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    plain = explain_log([oom])
    captured = explain_log(["Capturing CUDA graphs: 20%", oom])
    assert plain is not None
    assert captured is not None
    assert plain.kind == captured.kind == "oom"
    assert "cuda_graphs" in captured.fix
    assert "cuda_graphs" not in plain.fix


def test_a_known_architecture_behind_a_broken_import_is_a_broken_installation() -> None:
    failure = explain_log(
        [
            "ERROR Error in inspecting model architecture 'LlamaForCausalLM'",
            "Traceback (most recent call last):",
            "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory",
            "ValueError: Model architectures ['LlamaForCausalLM'] are not supported for now.",
        ]
    )
    assert failure is not None
    assert failure.kind == "broken_install"
    assert failure.why.startswith("ImportError: libcusparseLt.so.0")


def test_other_faults_from_the_field_are_told_apart() -> None:
    said = {
        "unknown model architecture: ''": "corrupt",
        "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory": "broken_install",
        "_C.abi3.so: undefined symbol: _ZN3c10": "broken_install",
        "Bfloat16 is only supported on GPUs with compute capability of at least 8.0": "unsupported_dtype",
        "incompatible device, expecting compute 8.0 got compute 8.9": "wrong_device",
        "OSError: You are trying to access a gated repo.": "gated",
        "OSError: x/y is not a local folder and is not a valid model identifier": "missing_file",
        "api_server.py: error: unrecognized arguments: --enable-chunked": "bad_flag",
        "error: invalid argument: --no-such-thing": "bad_flag",
        "serve_xllamacpp: error: unknown parameter 'n_bathc' of CommonParams; the nearest is 'n_batch'": "bad_flag",
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1024.00 MiB on device 0: "
        "cudaMalloc failed: out of memory": "oom",
        "Not enough memory to handle 4096 prefill tokens. You need to decrease": "oom",
        "ggml_validate_row_data: found nan value at block 7": "corrupt",
    }
    found = {line: failure.kind if (failure := explain_log([line])) else None for line in said}
    assert found == said


def test_a_line_of_a_hundred_names_is_cut() -> None:
    names = ", ".join(f"'Model{number}ForCausalLM'" for number in range(300))
    failure = explain_log([f"Model architectures ['X'] are not supported for now. Supported: {names}"])
    assert failure is not None
    assert len(failure.why) <= WHY_LENGTH + 2
    assert "['X'] are not supported for now" in failure.why


def test_a_decisive_word_far_to_the_right_is_still_shown() -> None:
    failure = explain_log(["x" * 2000 + " std::bad_alloc " + "y" * 2000])
    assert failure is not None
    assert "std::bad_alloc" in failure.why


def test_every_rule_has_words_that_can_be_filled() -> None:
    for rule in RULES:
        assert rule.mark
        assert rule.fix
        for name in ("{n}", "{arch}", "{module}"):
            if name in rule.what + rule.fix:
                assert f"?P<{name[1:-1]}>" in rule.pattern


def test_death_by_signal_is_told_with_the_last_words() -> None:
    failure = explain_exit(None, 9, ["loading tensors", "", "   "], doing="loading")
    assert failure.kind == "crashed"
    assert failure.what == "The engine died by signal 9 (SIGKILL) while loading."
    assert failure.why == "loading tensors"
    assert "dmesg" in failure.fix


def test_a_part_that_died_is_told_with_its_name_and_how() -> None:
    killed = explain_log(lines(SGLANG, "startup"))  # its scheduler was killed in the end
    assert killed is not None
    assert killed.what == "The engine's scheduler_0 was killed, and its server ended itself for it."
    fault = explain_log(
        ["Subprocess detokenizer (pid=7) crashed with exit code -11. Triggering SIGQUIT for cleanup..."]
    )
    assert fault is not None
    assert fault.what == "The engine's detokenizer died by signal 11, and its server ended itself for it."


def test_warnings_of_python_are_no_last_words() -> None:
    killed = lines(SGLANG, "killed_server")
    assert "warnings.warn(" in killed[-1]
    assert explain_exit(None, 9, killed).why.endswith('"GET /metrics HTTP/1.1" 200 OK')


def test_death_by_signal_prefers_the_last_error_to_routine_and_blames_no_memory_unasked() -> None:
    routine = ['INFO: 127.0.0.1 - "GET /metrics HTTP/1.1" 200 OK'] * 3
    said = ["(EngineCore pid=7) ERROR 11-30 20:00:00 [core.py:12] RuntimeError: shm broadcast gone", *routine]
    assert explain_exit(None, 9, said).why == said[0]
    assert explain_exit(None, 9, routine).why == routine[0]
    assert explain_exit(None, 9, ["Traceback (most recent call last):", "ValueError: x", "bye"]).why == "ValueError: x"
    fix = explain_exit(None, 9, routine).fix
    assert fix.index("by a user") < fix.index("memory")


def test_a_negative_exit_code_is_a_signal() -> None:
    assert "signal 11 (SIGSEGV)" in explain_exit(-11, None, []).what


def test_a_plain_exit_status_is_told_as_such() -> None:
    failure = explain_exit(3, None, [f"line {number}" for number in range(9)], doing="measuring")
    assert failure.what == "The engine ended with status 3 while measuring."
    assert failure.why == "line 6\nline 7\nline 8"
