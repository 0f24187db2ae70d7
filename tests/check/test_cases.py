import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from deploytui.artifact.embedded import EMBEDDED
from deploytui.check.cases import CaseCheck, check_case
from deploytui.engine.protocol import Probe, Probed
from deploytui.plan.asked import longest_request
from deploytui.profile.load_schema import Closed, Uniform
from deploytui.profile.schema import Candidate, Profile, Settings, Workload
from tests.artifact.build import PAIRS, gguf

BUILT_IN = "builtin:smollm2-135m-instruct-q4_1"
WORKLOAD = Workload(prompt_tokens=64, output_tokens=16, load=Closed(concurrency=2))
CPU_ONLY = {"calls": {"xllamacpp:get_device_info": [{"name": "CPU", "description": "a CPU", "type": 0}]}}


async def installed(probe: Probe) -> Probed:
    return Probed(found=True, version="2026.10.11549", detail=CPU_ONLY)


async def absent(probe: Probe) -> Probed:
    return Probed(found=False)


async def never(probe: Probe) -> Probed:
    raise AssertionError("nothing needs to be asked")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.gguf").write_bytes(gguf(*PAIRS))
    return tmp_path


def checked(folder: Path, ask: Any = installed, workload: Workload = WORKLOAD, **changes: Any) -> CaseCheck:
    candidate = replace(Candidate(name="a", engine="llamacpp", model="m.gguf"), **changes)
    profile = Profile(workload=workload, candidates=(candidate,))
    return anyio.run(check_case, profile, candidate, folder, folder / "cache", ask)


def test_a_candidate_that_can_be_launched_is_ready_with_its_facts(folder: Path) -> None:
    case = checked(folder)
    assert (case.status, case.failure) == ("ready", None)
    assert case.model_path == str(folder / "m.gguf")
    assert case.artifact is not None
    assert case.artifact.quantization == "Q4_K_M"
    assert case.probed is not None
    assert case.probed.version == "2026.10.11549"


def test_an_unknown_engine_is_answered_with_the_nearest(folder: Path) -> None:
    case = checked(folder, never, engine="llamcpp")
    assert case.status == "invalid_config"
    assert case.failure is not None
    assert "llamacpp" in case.failure.fix


def test_a_model_that_does_not_exist_is_named_as_asked_and_as_resolved(folder: Path) -> None:
    case = checked(folder, model="sub/none.gguf")
    assert case.status == "invalid_config"
    assert case.failure is not None
    assert "'sub/none.gguf'" in case.failure.what
    assert str(folder / "sub/none.gguf") in case.failure.what


def test_an_engine_that_is_not_there_is_unsupported_whatever_its_model_is_called(folder: Path) -> None:
    case = checked(folder, absent, engine="vllm", model="Qwen/Qwen2.5-7B-Instruct")
    assert case.status == "unsupported"
    assert case.failure is not None
    assert case.failure.kind == "not_installed"
    assert sys.executable in case.failure.what


@pytest.mark.parametrize(
    ("changes", "status", "kind"),
    [
        ({"device": "cuda"}, "unsupported", "wrong_device"),
        ({"engine_version": "==1.0"}, "unsupported", "wrong_version"),
        ({"engine_version": "latest"}, "invalid_config", "invalid_config"),
        ({"settings": Settings(tensor_parallel=8)}, "unsupported", "unsupported_setting"),
        ({"settings": Settings(max_model_len=79)}, "invalid_config", "invalid_config"),
        ({"format": "safetensors"}, "unsupported", "unsupported_format"),
        ({"model": None}, "invalid_config", "invalid_config"),
    ],
)
def test_what_can_not_run_is_told_before_launch(folder: Path, changes: dict[str, Any], status: str, kind: str) -> None:
    case = checked(folder, **changes)
    assert case.status == status
    assert case.failure is not None
    assert case.failure.kind == kind
    assert case.failure.fix


def test_a_context_that_just_fits_the_workload_is_taken(folder: Path) -> None:
    assert checked(folder, settings=Settings(max_model_len=80)).status == "ready"


def test_a_context_is_held_against_the_lengths_that_are_really_drawn(folder: Path) -> None:
    drawn = replace(WORKLOAD, prompt_tokens=Uniform(min=64, max=9000), requests=50)
    longest = longest_request(drawn)
    just, short = (
        checked(folder, never, workload=drawn, engine="mock", settings=Settings(max_model_len=length))
        for length in (longest, longest - 1)
    )
    assert just.status == "ready"
    assert short.failure is not None
    assert f"needs {longest} tokens" in short.failure.what


def test_a_request_longer_than_the_models_context_is_noted(folder: Path) -> None:
    (note,) = checked(folder, workload=replace(WORKLOAD, prompt_tokens=9000)).notes
    assert "needs 9016 tokens, more than the model's context of 8192" in note


def test_another_format_than_the_engine_loads_is_unsupported(folder: Path) -> None:
    (folder / "m.safetensors").write_bytes(b"\x02" + bytes(7) + b"{}")
    case = checked(folder, model="m.safetensors")
    assert case.status == "unsupported"
    assert case.failure is not None
    assert "safetensors" in case.failure.what


def test_what_the_file_says_against_the_profile_is_noted(folder: Path) -> None:
    assert "the file says Q4_K_M" in checked(folder, quantization="Q8_0").notes[0]
    assert "8192" in checked(folder, settings=Settings(max_model_len=9000)).notes[0]
    assert checked(folder, quantization="q4_k_m").notes == ()


def test_a_damaged_file_is_refused_before_launch(folder: Path) -> None:
    (folder / "m.gguf").write_bytes(gguf(*PAIRS)[:-8])
    case = checked(folder)
    assert case.failure is not None
    assert (case.status, case.failure.kind) == ("load_failed", "corrupt")


def test_an_embedded_model_is_ready_and_says_what_is_downloaded(folder: Path) -> None:
    case = checked(folder, model=BUILT_IN)
    assert case.status == "ready"
    assert case.download == EMBEDDED[BUILT_IN]
    assert case.model_path is None
    assert "88 MiB" in case.notes[0]
    assert "Apache-2.0" in case.notes[0]


def test_a_mock_and_an_endpoint_need_no_model_and_no_probe(folder: Path) -> None:
    assert checked(folder, never, engine="mock", model="simulated").status == "ready"
    attached = checked(folder, never, engine="openai", model="some/name", base_url="http://127.0.0.1:1")
    assert attached.status == "ready"
    assert attached.artifact is None


def test_a_case_can_be_written_as_json(folder: Path) -> None:
    assert b'"status":"ready"' in msgspec.json.encode(checked(folder))


def test_a_model_that_is_made_here_names_the_environment_that_makes_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(folder / "none"))
    case = checked(folder, model="builtin:smollm2-135m-instruct-bf16")
    assert case.failure is not None
    assert (case.status, case.failure.kind) == ("unsupported", "not_installed")
    assert "deploytui setup-engine transformers" in case.failure.fix
