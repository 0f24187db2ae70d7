import sys

from msgspec.structs import replace

from deploytui.engine.mock import Mock
from deploytui.engine.protocol import Place
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts

PLACE = Place(port=9000, model_path=None, concurrency=2, context_tokens=64, api_key="s3cret")
MOCK = Candidate(name="m", engine="mock", args=("--never-ready",))


def test_the_mock_runs_our_script_isolated_with_its_args() -> None:
    launch = Mock().launch(MOCK, PLACE)
    assert launch.argv[:2] == (sys.executable, "-I")
    assert launch.argv[2].endswith("host/mock_engine.py")
    assert launch.argv[-1] == "--never-ready"
    assert launch.env["DEPLOYTUI_API_KEY"] == "s3cret"
    assert "s3cret" not in " ".join(launch.argv)


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
