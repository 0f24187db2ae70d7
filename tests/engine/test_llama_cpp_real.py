"""The llama_cpp package really: a session through our host. Opt-in, since it is built from source for minutes.

DEPLOYTUI_TEST_ENGINES=llama-cpp-python pytest -m optional tests/engine/test_llama_cpp_real.py
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploytui.engine.failures import explain_log
from tests.engines import engine_python, model_path
from tests.host.real_hosts import GREEDY, failing, serving, spoken, usage
from tests.host.toys import Toy
from tests.run.sessions import assert_nothing_left, deploytui, only_session

pytestmark = [pytest.mark.optional, pytest.mark.timeout(1800)]

NAME = "llama-cpp-python"
SCRIPT = "serve_llama_cpp.py"
PROFILE = """
schema = 1
name = "llama-cpp-real"
timeouts = {{ load = 300, request = 120 }}
[workload]
prompt_tokens = 48
output_tokens = 12
requests = 4
load = {{ kind = "closed", concurrency = 2 }}
warmup_requests = 2
repeats = 3
[quality]
tasks = ["task.jsonl"]
max_tokens = 8
[gates]
min_success_rate = 0.9
max_ttft_ms = {{ p50 = 600000 }}
[[candidates]]
name = "bindings"
engine = "llamacpp"
model = "{model}"
python = "{python}"
device = "cpu"
settings = {{ threads = 1, max_model_len = 512, kv_cache_dtype = "q8_0", prefix_cache = false }}
[[candidates]]
name = "many"
engine = "llamacpp"
model = "{model}"
python = "{python}"
settings = {{ max_num_seqs = 4 }}
[[candidates]]
name = "gpu"
engine = "llamacpp"
model = "{model}"
python = "{python}"
device = "cuda"
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Toy]:
    with serving(engine_python(NAME), SCRIPT, model_path("gguf"), "--max-model-len", "512") as started:
        yield started


def test_a_whole_session_counts_every_token_and_says_what_the_package_can_not_do(tmp_path: Path) -> None:
    task = {"id": "one", "prompt": "Say something.", "checker": "regex", "expected": "."}
    (tmp_path / "task.jsonl").write_text(json.dumps(task) + "\n", encoding="utf-8")
    profile = tmp_path / "case.toml"
    profile.write_text(PROFILE.format(model=model_path("gguf"), python=engine_python(NAME)), encoding="utf-8")
    done = deploytui(tmp_path / "state", "run", profile, "--trust", "--json", "-", timeout_s=1200)
    assert_nothing_left(only_session(tmp_path / "state").name)
    row = done.row("bindings")
    assert (row["status"], row["run"]) == ("load_success", "ok"), done.err
    tokens = row["metrics"]["output_tokens"]
    assert (tokens["n"], tokens["min"], tokens["max"]) == (12, 12, 12)
    assert row["metrics"]["quality"]["value"] == 1
    assert row["kv_cache"]["tokens"] == 512
    assert row["kv_cache"]["bytes"] > 0
    told = row["runtime"]["settings"]
    assert "one request at a time" in told["batching"]
    assert told["kv_cache_dtype"] == "q8_0"
    assert done.row("many")["failure"]["kind"] == "unsupported_setting"
    if not done.result()["environment"]["gpus"]:
        assert done.row("gpu")["failure"]["kind"] == "wrong_device"


def test_ignore_eos_gives_exactly_what_is_asked_for_and_counts_are_true(host: Toy) -> None:
    stopped = host.chat("Say hi.", max_tokens=100, **GREEDY)
    texts = [delta["content"] for delta in stopped.deltas if delta.get("content")]
    assert stopped.finishes[-1] == "stop"
    assert usage(stopped)["completion_tokens"] - 1 == len(texts)
    forced = host.chat("Say hi.", max_tokens=100, ignore_eos=True, **GREEDY)
    assert usage(forced)["completion_tokens"] == 100
    assert spoken(forced).startswith(spoken(stopped))


def test_what_does_not_fit_the_context_is_a_400_and_a_seed_repeats(host: Toy) -> None:
    assert host.text("a " * 600).status == 400
    asked = {"max_tokens": 24, "temperature": 1.5, "seed": 7}
    assert len({host.text("Once", **asked).json["choices"][0]["text"] for _ in range(2)}) == 1


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--set", "n_bathc=3"), "unknown parameter 'n_bathc'"),
        (("--cache-type", "q9"), "no type 'q9'"),
        (("--device", "cuda"), "sees no GPU"),
    ],
)
def test_what_it_can_not_take_ends_it_with_one_clear_line(option: tuple[str, ...], words: str) -> None:
    ended = failing(engine_python(NAME), SCRIPT, model_path("gguf"), *option)
    assert ended.returncode == 1
    assert words in ended.stdout
    assert "Traceback" not in ended.stdout
    failure = explain_log(ended.stdout.splitlines())
    assert failure is not None
    assert failure.kind in ("bad_flag", "unsupported_setting", "wrong_device")


def test_a_file_that_is_no_model_is_explained_by_llama_cpps_own_lines(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model at all")
    ended = failing(engine_python(NAME), SCRIPT, broken)
    assert ended.returncode == 1
    failure = explain_log(ended.stdout.splitlines())
    assert failure is not None
    assert failure.kind == "corrupt"
    assert os.fspath(broken) in ended.stdout
