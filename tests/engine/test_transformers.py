import json
import sys
from pathlib import Path
from typing import Any

import pytest

from deploytui.engine.protocol import Launch, Place, Probed
from deploytui.engine.registry import load_engine
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import EngineFacts

ENGINE = load_engine("transformers")
NO_CUDA = {"built_for": None, "devices": 0, "error": "AssertionError: Torch not compiled with CUDA enabled"}
HAS_CUDA = {"built_for": "13.0", "devices": 2, "error": ""}


def candidate(**changes: Any) -> Candidate:
    return Candidate(**({"name": "hf", "engine": "transformers", "model": "/models/m"} | changes))


def probed(**detail: Any) -> Probed:
    return Probed(found=True, version="5.24.0", detail=detail)


def launched(asked: Candidate, **changes: Any) -> Launch:
    plain: dict[str, Any] = {"port": 81, "model_path": "/models/m", "concurrency": 4, "context_tokens": 100}
    return ENGINE.launch(asked, Place(**(plain | changes)))


def options(launch: Launch) -> list[str]:
    """What follows the host's path."""
    at = next(at for at, word in enumerate(launch.argv) if word.endswith("serve_transformers.py"))
    return list(launch.argv[at + 1 :])


def test_a_cpu_candidate_as_a_process() -> None:
    launch = launched(
        candidate(
            device="cpu", dtype="bfloat16", python="/venv/bin/python", settings=Settings(threads=2, max_model_len=512)
        ),
        api_key="s3cret",
    )
    assert launch.argv[0] == "/venv/bin/python"
    assert options(launch) == [
        *("--model", "/models/m", "--alias", "hf", "--port", "81", "--device", "cpu"),
        *("--max-model-len", "512", "--threads", "2", "--dtype", "bfloat16"),
    ]
    assert launch.env["DEPLOYTUI_API_KEY"] == "s3cret"
    assert launch.env["CUDA_VISIBLE_DEVICES"] == ""
    assert launch.env["HF_HUB_OFFLINE"] == "1"
    assert not any("s3cret" in word for word in launch.argv)
    assert launch.base_url == "http://127.0.0.1:81"


def test_several_gpus_share_the_layers_and_one_does_not() -> None:
    two = launched(candidate(device="cuda", devices=2), gpu_uuids=("GPU-a", "GPU-b"))
    assert options(two)[-2:] == ["--device-map", "auto"]
    assert two.env["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert "--device-map" not in options(launched(candidate(device="cuda"), gpu_uuids=("GPU-a",)))


def test_pickles_and_code_of_the_model_are_read_only_when_the_profile_says_so() -> None:
    assert not {"--allow-pickle", "--trust-remote-code"} & set(options(launched(candidate())))
    trusting = launched(candidate(allow_pickle=True, trust_remote_code=True, args=("--attn-implementation", "eager")))
    assert options(trusting)[-4:] == ["--trust-remote-code", "--allow-pickle", "--attn-implementation", "eager"]
    assert "HF_HUB_OFFLINE" not in trusting.env


@pytest.mark.parametrize(
    ("uuids", "cuda", "device"), [((), HAS_CUDA, "cpu"), (("GPU-a",), NO_CUDA, "cpu"), (("GPU-a",), HAS_CUDA, "cuda")]
)
def test_without_a_device_it_takes_the_gpu_that_torch_can_use(
    uuids: tuple[str, ...], cuda: dict[str, Any], device: str
) -> None:
    words = options(launched(candidate(), gpu_uuids=uuids, probed=probed(cuda=cuda)))
    assert words[words.index("--device") + 1] == device


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"settings": Settings(max_num_seqs=4)}, "unsupported_setting", "one request at a time"),
        ({"settings": Settings(tensor_parallel=2)}, "unsupported_setting", "tensor_parallel"),
        ({"settings": Settings(prefix_cache=True)}, "unsupported_setting", "prefix_cache = true"),
        ({"settings": Settings(memory_share=0.5)}, "unsupported_setting", "reserves no memory"),
        ({"settings": Settings(kv_cache_dtype="fp8")}, "unsupported_setting", "kv_cache_dtype"),
        ({"dtype": "int4"}, "unsupported_dtype", "int4"),
        ({"format": "onnx"}, "unsupported_format", "onnx"),
        ({"command": ("serve",)}, "invalid_config", "command"),
        ({"model": None}, "invalid_config", "no model"),
        ({"base_url": "http://x"}, "invalid_config", "base_url"),
    ],
)
def test_what_it_can_not_follow_is_said_before_anything_runs(changes: dict[str, Any], kind: str, words: str) -> None:
    failure = ENGINE.objection(candidate(**changes))
    assert failure is not None
    assert failure.kind == kind
    assert words in failure.what
    assert failure.fix


@pytest.mark.parametrize(
    "settings", [Settings(), Settings(max_num_seqs=1, tensor_parallel=1), Settings(prefix_cache=False, threads=1)]
)
def test_what_it_does_anyway_may_be_asked_for(settings: Settings) -> None:
    assert ENGINE.objection(candidate(settings=settings)) is None


def test_cuda_with_a_torch_that_has_none_is_the_wrong_device_in_torchs_words() -> None:
    failure = ENGINE.judge(candidate(device="cuda"), probed(cuda=NO_CUDA))
    assert failure is not None
    assert failure.kind == "wrong_device"
    assert failure.why == NO_CUDA["error"]
    assert ENGINE.judge(candidate(device="cuda"), probed(cuda=HAS_CUDA)) is None
    assert ENGINE.judge(candidate(device="cpu"), probed(cuda=NO_CUDA)) is None


@pytest.mark.parametrize(
    ("own_code", "trusted", "refused"), [(False, False, True), (True, False, True), (True, True, False)]
)
def test_a_model_type_it_does_not_know_is_refused_unless_the_model_brings_trusted_code(
    own_code: bool, trusted: bool, refused: bool
) -> None:
    told = probed(cuda=NO_CUDA, model_type={"name": "zzama", "known": False, "own_code": own_code})
    failure = ENGINE.judge(candidate(trust_remote_code=trusted), told)
    assert (failure is not None) == refused
    if failure is not None:
        assert failure.kind == "unsupported_arch"
        assert "'zzama'" in failure.what
        assert ("trust_remote_code" in failure.fix) == own_code


def test_not_installed_broken_and_locked() -> None:
    absent = ENGINE.judge(candidate(), Probed(found=False))
    broken = ENGINE.judge(candidate(), Probed(found=True, version="5.24.0", error="ImportError: no torch"))
    other = ENGINE.judge(candidate(engine_version="==4.0"), probed())
    assert absent is not None
    assert broken is not None
    assert other is not None
    assert [absent.kind, broken.kind, other.kind] == ["not_installed", "broken_install", "wrong_version"]
    assert "deploytui setup-engine transformers" in absent.fix


def test_the_probe_runs_in_the_candidates_interpreter_and_names_only_a_local_model(tmp_path: Path) -> None:
    near, far = (ENGINE.probe(candidate(model=model, python=sys.executable)) for model in (str(tmp_path), "org/model"))
    assert near is not None
    assert far is not None
    assert near.argv[0] == sys.executable
    assert near.argv[-2:] == ("--model", str(tmp_path))
    assert "--model" not in far.argv


def test_what_the_host_tells_is_kept_and_batching_is_part_of_it() -> None:
    props = {
        "engine": "transformers",
        "version": "5.24.0",
        "batching": "none: one request at a time, the others wait in line",
        "slots": 1,
        "context_length": 8192,
        "dtype": "bfloat16",
        "device_map": None,
    }
    facts = ENGINE.readback(EngineFacts(name="transformers"), {"/props": json.loads(json.dumps(props))})
    assert facts.version == "5.24.0"
    assert facts.settings == {
        "batching": props["batching"],
        "max_num_seqs": 1,
        "max_model_len": 8192,
        "dtype": "bfloat16",
    }
    assert ENGINE.readback(EngineFacts(name="transformers"), {"/props": None}) == EngineFacts(name="transformers")
