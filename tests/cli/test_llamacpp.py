"""llama.cpp on the command line: what it cannot take is understood, and a binary of one's own works."""

import json
import sys
from pathlib import Path

import pytest

from deploytui.engine.adapter import host_script
from tests.artifact.build import gguf, words
from tests.cli.calls import WORKLOAD, process
from tests.run.sessions import Done, assert_nothing_left, only_session

MODEL = "builtin:smollm2-135m-instruct-q4_1"
ROW = '[[candidates]]\nname = "{name}"\nengine = "llamacpp"\nmodel = "{model}"\n{lines}\n'
REFUSED = {
    "short": ("settings = { threads = 1, max_model_len = 31 }", "invalid_config", "invalid_config", "needs 32 tokens"),
    "argument": ('settings = { threads = 1 }\nargs = ["nonsense=1"]', "load_failed", "bad_flag", "'nonsense'"),
    "value": ('settings = { threads = 1 }\nargs = ["n_batch=many"]', "load_failed", "bad_flag", "'many'"),
    "loose": ('args = ["--verbose"]', "invalid_config", "invalid_config", "NAME=VALUE"),
    "cuda": ('device = "cuda"', "unsupported", "wrong_device", "sees no GPU"),
    "cache": ('settings = { kv_cache_dtype = "fp8" }', "unsupported", "unsupported_setting", "'fp8'"),
}
SERVER = """#!/bin/sh
case "$1" in
--version) echo "version: 4567 (abcdef01)" >&2; exit 0 ;;
--list-devices) echo "Available devices:"; exit 0 ;;
esac
while [ $# -gt 0 ]; do
    case "$1" in --port) port="$2" ;; --alias) alias="$2" ;; esac
    shift
done
exec {python} -I {mock} --port "$port" --model "$alias" --api-key "$LLAMA_API_KEY"
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One session of candidates that can't be loaded."""
    folder = tmp_path_factory.mktemp("refused")
    rows = "".join(ROW.format(name=name, model=MODEL, lines=lines) for name, (lines, *_) in REFUSED.items())
    (folder / "case.toml").write_text(WORKLOAD + rows, encoding="utf-8")
    done = process("run", folder / "case.toml", "--state-dir", folder / "state", "--json", "-")
    assert_nothing_left(only_session(folder / "state").name)
    return done


@pytest.mark.parametrize("name", REFUSED)
def test_what_llama_cpp_can_not_take_is_said_in_its_own_words(refused: Done, name: str) -> None:
    _, status, kind, words = REFUSED[name]
    if name == "cuda" and refused.result()["environment"]["gpus"]:
        pytest.skip("this node has a GPU")
    row = refused.row(name)
    assert (row["status"], row["failure"]["kind"]) == (status, kind)
    assert words in row["failure"]["what"] + row["failure"]["why"]
    assert row["failure"]["fix"]
    assert "Traceback" not in refused.err


@pytest.mark.parametrize("how", ["path", "PATH"])
def test_a_server_binary_is_found_probed_and_measured(tmp_path: Path, how: str) -> None:
    server, model, state = tmp_path / "llama-server", tmp_path / "tiny.gguf", tmp_path / "state"
    server.write_text(SERVER.format(python=sys.executable, mock=host_script("mock_engine.py")), encoding="utf-8")
    server.chmod(0o755)
    model.write_bytes(gguf(words("general.architecture", "llama")))
    command = json.dumps([str(server) if how == "path" else "llama-server"])
    rows = ROW.format(name="own", model=model, lines=f"command = {command}\nsettings = {{ threads = 1 }}")
    (tmp_path / "case.toml").write_text(WORKLOAD + rows, encoding="utf-8")
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    asked = ("run", tmp_path / "case.toml", "--state-dir", state, "--json", "-")
    assert process(*asked, env=path).code == 2
    done = process(*asked, "--trust", env=path)
    row = done.row("own")
    assert (row["status"], row["run"]) == ("load_success", "ok"), done.err
    assert row["engine"]["version"] == "4567"
    assert row["runtime"]["argv"][0].endswith("llama-server")
    assert "--threads" in row["runtime"]["argv"]
    assert "LLAMA_API_KEY" not in str(row["runtime"])
    assert_nothing_left(only_session(state).name)
