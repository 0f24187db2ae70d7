"""SGLang on the CPU, really: a whole session, and three in which a process is killed. Opt-in: an environment of 10 GiB.

DEPLOYTUI_TEST_SGLANG=/path/to/bin/python pytest -m optional tests/engine/test_sglang_real.py

The build of the package index has no kernels for the CPU. It runs all the same with a module `vllm._custom_ops` that
has `rotary_embedding` in plain torch (positions, query, key, head_size, cos_sin_cache, is_neox; in place), whose folder
DEPLOYTUI_TEST_SGLANG_PYTHONPATH names.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.engine.trees import assert_gone, engine_tree, is_measuring, whole_tree
from tests.engines import model_path
from tests.run.sessions import assert_nothing_left, begin, ended, only_session, wait_for

PYTHON = os.environ.get("DEPLOYTUI_TEST_SGLANG", "")
MODULES = os.environ.get("DEPLOYTUI_TEST_SGLANG_PYTHONPATH", "")

pytestmark = [
    pytest.mark.optional,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not PYTHON, reason="needs SGLang: name its interpreter in DEPLOYTUI_TEST_SGLANG"),
]

LIMIT_S = 900.0
"""A busy machine took 136 s to load it."""
ROLES = ("sglang.launch_server", "sglang::scheduler", "sglang::detokenizer")
CPU_WORDS = ("--attention-backend", "torch_native", "--sampling-backend", "pytorch", "--disable-overlap-schedule")

PROFILE = """
schema = 1
name = "sglang-real"
timeouts = {{ load = 800, request = 120 }}
[workload]
prompt_tokens = 32
output_tokens = {tokens}
requests = {requests}
load = {{ kind = "closed", concurrency = 2 }}
warmup_requests = 2
repeats = 3
endpoint = "completions"
[quality]
tasks = ["task.jsonl"]
max_tokens = 8
[checks]
recovery = {recovery}
[gates]
min_success_rate = 0.9
min_quality = 0.5
max_ttft_ms = {{ p50 = 60000 }}
[[candidates]]
name = "sglang"
engine = "sglang"
model = "{model}"
python = "{python}"
device = "cpu"
dtype = "bfloat16"
settings = {{ max_model_len = 512, max_num_seqs = 2, prefix_cache = false, threads = 1 }}
args = {args}
"""
WITHOUT_KERNELS = '[candidates.env]\nPYTHONPATH = "{modules}"\nSGLANG_USE_CPU_ENGINE = "0"\n'


def write_profile(folder: Path, *, tokens: int = 128, requests: int = 200, recovery: bool = False) -> Path:
    """One SGLang candidate on the CPU; as it stands it measures for so long that it is still at it when killed."""
    task = {"id": "one", "prompt": "What is the capital of France?", "checker": "regex", "expected": "(?i)paris"}
    (folder / "task.jsonl").write_text(json.dumps(task) + "\n", encoding="utf-8")
    words: dict[str, Any] = {"tokens": tokens, "requests": requests, "recovery": json.dumps(recovery)}
    args = json.dumps([*CPU_WORDS, "--max-total-tokens", "8192"])
    text = PROFILE.format(**words, model=model_path("safetensors"), python=PYTHON, args=args)
    path = folder / "case.toml"
    path.write_text(text + (WITHOUT_KERNELS.format(modules=MODULES) if MODULES else ""), encoding="utf-8")
    return path


def killed(tmp_path: Path, role: str) -> dict[str, Any]:
    """The row of a session one of whose engine's processes is killed while it measures; all of them are gone then."""
    state = tmp_path / "state"
    running = begin(state, "run", write_profile(tmp_path), "--trust", "--json", "-")
    wait_for(lambda: running.poll() is not None or is_measuring(state) or None, "the measurement", LIMIT_S)
    tree = engine_tree(running.pid, ROLES)
    assert set(tree) == set(ROLES), running.poll()
    os.kill(tree[role].pid, signal.SIGKILL)
    assert_gone(tree)  # within half a minute
    row = ended(running).row("sglang")
    assert_nothing_left(only_session(state).name)
    assert (row["status"], row["run"], row["failure"]["kind"]) == ("load_success", "run_failed", "crashed")
    assert row["verdict"]["decision"] == "reject"
    assert row["survivors"] == []
    return row


def test_a_whole_session_tells_tokens_cache_and_settings_and_leaves_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    running = begin(
        state, "run", write_profile(tmp_path, tokens=16, requests=6, recovery=True), "--trust", "--json", "-"
    )
    tree = wait_for(lambda: whole_tree(running.pid, ROLES), "server, scheduler and detokenizer", LIMIT_S)
    wait_for(lambda: running.poll() is not None or is_measuring(state) or None, "the measurement", LIMIT_S)
    done = ended(running)
    assert done.code == 0, done.err
    row = done.row("sglang")
    assert row["status"] == "load_success"
    tokens = row["metrics"]["output_tokens"]
    assert (tokens["n"], tokens["min"], tokens["max"]) == (18, 16, 16)
    assert row["metrics"]["success_rate"]["value"] == 1
    assert row["metrics"]["cached_tokens"] == 0
    assert row["kv_cache"] == {"tokens": 8192, "bytes": 8193 * 30 * 3 * 64 * 2 * 2}
    told = row["runtime"]["settings"]
    assert (told["max_model_len"], told["max_num_seqs"], told["dtype"]) == (512, 2, "bfloat16")
    assert (told["kv_cache_dtype"], told["prefix_cache"], told["cuda_graphs"]) == ("bfloat16", False, False)
    assert row["metrics"]["peak_host_gib"] > 1
    assert [check["answers"] for check in row["recovery"]] == [True, True, True]
    assert_gone(tree)
    assert_nothing_left(only_session(state).name)


def test_a_killed_server_takes_its_scheduler_and_detokenizer_with_it(tmp_path: Path) -> None:
    failure = killed(tmp_path, "sglang.launch_server")["failure"]
    assert "SIGKILL" in f"{failure['what']} {failure['why']}"


@pytest.mark.parametrize("part", ["scheduler", "detokenizer"])
def test_a_killed_part_is_named_as_what_ended_the_server(tmp_path: Path, part: str) -> None:
    failure = killed(tmp_path, f"sglang::{part}")["failure"]
    assert part in failure["what"]
    assert "was killed" in failure["what"]
    assert "crashed with exit code -9" in failure["why"]
