"""ONNX Runtime GenAI really: one session over a folder of ONNX, over weights that are built first, and what fails."""

import json
from typing import Any

import pytest

from tests.engines import engine_python, model_path
from tests.run.sessions import Done, assert_nothing_left, deploytui, only_session

pytestmark = pytest.mark.timeout(3600)

HEAD = """
schema = 1
name = "onnx-real"
timeouts = { load = 300, request = 120, prepare = 900 }
[workload]
prompt_tokens = 48
output_tokens = 12
requests = 4
load = { kind = "closed", concurrency = 2 }
warmup_requests = 2
repeats = 3
[quality]
tasks = ["task.jsonl"]
max_tokens = 8
[gates]
min_success_rate = 0.9
max_ttft_ms = { p50 = 600000 }
"""
CANDIDATE = """
[[candidates]]
name = "{name}"
engine = "onnxruntime-genai"
model = "{model}"
python = "{python}"
{lines}
"""
SETTINGS = 'device = "cpu"\nsettings = {{ threads = 1, max_model_len = {context} }}\n'


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("onnx")
    task = {"id": "one", "prompt": "Say something.", "checker": "regex", "expected": "."}
    (folder / "task.jsonl").write_text(json.dumps(task) + "\n", encoding="utf-8")
    builder = engine_python("transformers")
    asked = {
        "ready": ("onnx", SETTINGS.format(context=512)),
        "built": (
            "safetensors",
            SETTINGS.format(context=512) + f'prepare = {{ precision = "int4", python = "{builder}" }}',
        ),
        "gpu": ("onnx", 'device = "cuda"'),
        "short": ("onnx", SETTINGS.format(context=50)),
        "long": ("onnx", SETTINGS.format(context=9000)),
    }
    python = engine_python("onnxruntime-genai")
    rows = "".join(
        CANDIDATE.format(name=name, model=model_path(kind), python=python, lines=lines)
        for name, (kind, lines) in asked.items()
    )
    profile = folder / "case.toml"
    profile.write_text(HEAD + rows, encoding="utf-8")
    done = deploytui(folder / "state", "run", profile, "--trust", "--json", "-", timeout_s=1800)
    assert_nothing_left(only_session(folder / "state").name)
    return done


@pytest.mark.parametrize("name", ["ready", "built"])
def test_every_token_is_counted_and_quality_is_asked(session: Done, name: str) -> None:
    row = session.row(name)
    assert (row["status"], row["run"]) == ("load_success", "ok"), session.err
    metrics = row["metrics"]
    assert metrics["success_rate"]["value"] == 1
    tokens = metrics["output_tokens"]
    assert (tokens["n"], tokens["min"], tokens["max"]) == (12, 12, 12)
    assert metrics["quality"]["value"] == 1
    assert metrics["output_tok_s"] > 0
    assert metrics["peak_host_gib"] > 0
    assert metrics["peak_allocated_gib"] is None


def test_what_runs_is_told_by_the_host(session: Done) -> None:
    row = session.row("ready")
    told: dict[str, Any] = row["runtime"]["settings"]
    assert "take turns" in told["batching"]
    assert (told["max_model_len"], told["max_num_seqs"]) == (512, 4)
    assert (told["threads"], told["device"]) == (1, "cpu")
    assert row["engine"]["version"] == told["versions"]["onnxruntime-genai"]


def test_weights_are_built_first_and_the_build_is_told(session: Done) -> None:
    row = session.row("built")
    (made,) = row["preparations"]
    assert made["name"] == "onnx int4"
    assert made["seconds"] > 0
    assert "onnxruntime-genai" in made["versions"]
    assert any(name.endswith("genai_config.json") for name in made["output_sha256"])
    assert row["cold_start"]["prepare_s"] > 0


@pytest.mark.parametrize(
    ("name", "status", "kind", "words"),
    [
        ("gpu", "unsupported", "wrong_device", "Cuda interface not available"),
        ("short", "invalid_config", "invalid_config", "max_model_len"),
        ("long", "invalid_config", "invalid_config", "8192"),
    ],
)
def test_what_can_not_run_is_said_in_the_librarys_words(
    session: Done, name: str, status: str, kind: str, words: str
) -> None:
    if name == "gpu" and session.result()["environment"]["gpus"]:
        pytest.skip("this node has a GPU")
    row = session.row(name)
    assert (row["status"], row["failure"]["kind"]) == (status, kind), row["failure"]
    assert words in row["failure"]["what"] + row["failure"]["why"]
    assert row["failure"]["fix"]
