"""Transformers really: a whole session on the CPU, the host by itself, and on a GPU where there is one."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploytui.engine.adapter import host_script
from deploytui.engine.failures import explain_log
from tests.engines import engine_python, model_path
from tests.host.living import until
from tests.host.mocks import chat_body, request
from tests.host.toys import Toy, begun
from tests.run.sessions import assert_nothing_left, deploytui, only_session

pytestmark = pytest.mark.timeout(3600)

PROFILE = """
schema = 1
name = "transformers-real"
timeouts = {{ load = 600, request = 120 }}
[workload]
prompt_tokens = 16
output_tokens = 12
requests = 4
load = {{ kind = "closed", concurrency = 2 }}
warmup_requests = 2
repeats = 3
endpoint = "completions"
[quality]
tasks = ["task.jsonl"]
max_tokens = 8
[gates]
min_success_rate = 0.9
max_ttft_ms = {{ p50 = 600000 }}
[[candidates]]
name = "hf"
engine = "transformers"
model = "{model}"
python = "{python}"
device = "{device}"
dtype = "bfloat16"
settings = {{ threads = 1, max_model_len = 512 }}
"""

ENV = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}


def session(folder: Path, device: str) -> tuple[dict[str, Any], str, Path]:
    """The result row of a session with one candidate, the runner's words, and the session's folder."""
    task = {"id": "one", "prompt": "Say something.", "checker": "regex", "expected": "."}
    (folder / "task.jsonl").write_text(json.dumps(task) + "\n", encoding="utf-8")
    profile = folder / "case.toml"
    words = {"model": model_path("safetensors"), "python": engine_python("transformers"), "device": device}
    profile.write_text(PROFILE.format(**words), encoding="utf-8")
    done = deploytui(folder / "state", "run", profile, "--trust", "--json", "-", timeout_s=1200)
    return done.row("hf"), done.err, only_session(folder / "state")


def test_a_whole_session_counts_every_token_asks_quality_and_leaves_nothing(tmp_path: Path) -> None:
    row, said, folder = session(tmp_path, "cpu")
    assert (row["status"], row["run"]) == ("load_success", "ok"), said
    assert row["engine"]["version"] == "5.24.0"
    metrics = row["metrics"]
    assert metrics["success_rate"]["value"] == 1
    tokens = metrics["output_tokens"]
    assert (tokens["n"], tokens["min"], tokens["max"]) == (12, 12, 12)
    assert metrics["quality"]["value"] == 1
    assert metrics["output_tok_s"] > 0
    assert metrics["peak_allocated_gib"] is None
    told = row["runtime"]["settings"]
    assert told["batching"].startswith("none: one request at a time")
    assert (told["max_model_len"], told["dtype"], told["threads"], told["device"]) == (512, "bfloat16", 1, "cpu")
    # One chunk a token, but for those inside of a character.
    assert 1 <= metrics["tokens_per_chunk"] < 1.2
    assert_nothing_left(folder.name)


def test_cuda_asked_for_where_torch_has_none_is_unsupported_and_nothing_is_measured(tmp_path: Path) -> None:
    row, _, folder = session(tmp_path, "cuda")
    assert row["status"] == "unsupported"
    assert row["failure"]["kind"] == "wrong_device"
    assert row["metrics"]["output_tok_s"] is None
    assert_nothing_left(folder.name)


def argv(model: Path | str, *options: str) -> list[str]:
    python = str(engine_python("transformers"))
    return [
        python,
        host_script("serve_transformers.py"),
        "--model",
        str(model),
        "--alias",
        "m",
        "--port",
        "0",
        *options,
    ]


@pytest.fixture(scope="module")
def host() -> Iterator[Toy]:
    with subprocess.Popen(
        argv(model_path("safetensors"), "--threads", "1"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV
    ) as process:
        try:
            yield begun(process)
        finally:
            process.kill()


GREEDY = {"temperature": 0, "ignore_eos": True, "stream_options": {"include_usage": True}}


def test_streamed_and_whole_answers_are_the_same_and_each_token_is_counted(host: Toy) -> None:
    streamed = host.text("Once upon a time", stream=True, max_tokens=24, **GREEDY)
    whole = host.text("Once upon a time", max_tokens=24, temperature=0, ignore_eos=True).json
    assert "".join(streamed.deltas) == whole["choices"][0]["text"]
    assert whole["choices"][0]["text"].startswith((" ", ",", "\n"))
    assert (
        streamed.events[-2]["usage"]
        == whole["usage"]
        == {
            "prompt_tokens": 4,
            "completion_tokens": 24,
            "total_tokens": 28,
        }
    )
    assert sum(bool(text) for text in streamed.deltas) == 24
    assert streamed.finishes[-1] == "length"


def test_characters_of_many_tokens_come_whole(host: Toy) -> None:
    answer = host.text("Emoji: 😀 🥳 👩‍👩‍👧 😀 🥳 👩‍👩‍👧 😀 🥳", stream=True, max_tokens=20, **GREEDY)
    text = "".join(answer.deltas)
    assert "\ufffd" not in text.rstrip("\ufffd")
    assert not text.isascii()
    assert answer.events[-2]["usage"]["completion_tokens"] == 20


def test_a_seed_repeats_a_sampled_answer_and_sampling_is_followed(host: Toy) -> None:
    asked = {"max_tokens": 12, "temperature": 1.5, "top_p": 0.9, "top_k": 50, "min_p": 0.01}
    texts = [
        host.text("A list of animals:", seed=seed, repetition_penalty=1.1, **asked).json["choices"][0]["text"]
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_an_answer_that_ends_by_itself_says_stop_and_counts_the_token_that_ended_it(host: Toy) -> None:
    body = chat_body("Reply with the single word: yes", temperature=0, stream=False, max_tokens=200)
    answer = host.send("POST", "/v1/chat/completions", body).json
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert 1 < answer["usage"]["completion_tokens"] < 200
    assert "<|im_end|>" not in answer["choices"][0]["message"]["content"]


def test_a_client_that_leaves_in_mid_stream_frees_the_slot(host: Toy) -> None:
    connection = host.connect()
    body = chat_body("Tell a long story.", max_tokens=4000, ignore_eos=True, temperature=0)
    connection.sendall(request("POST", "/v1/chat/completions", body))
    while b'"content": "' not in connection.recv(65536).replace(b'"content": ""', b""):
        pass
    connection.close()
    until(lambda: b"requests_running 0\n" in host.get("/metrics").body)
    assert host.text("Once", max_tokens=2).status == 200


@pytest.mark.parametrize("prompt", [[10**9], [0, 50000]])
def test_ids_outside_of_the_vocabulary_are_refused_and_the_next_request_is_served(host: Toy, prompt: Any) -> None:
    assert host.text(prompt, max_tokens=2).status == 400
    assert host.text("Once", max_tokens=2).status == 200


def test_it_says_how_it_runs(host: Toy) -> None:
    props, memory = host.get("/props").json, host.get("/memory").json
    assert (props["dtype"], props["device"], props["threads"], props["slots"]) == ("bfloat16", "cpu", 1, 1)
    assert props["context_length"] == 8192
    assert "+cpu" in props["versions"]["torch"] or props["cuda"]
    assert memory["allocated_bytes"] is None or memory["gpus"]


def test_a_gguf_file_is_dequantised_and_that_is_said() -> None:
    with subprocess.Popen(
        argv(model_path("gguf"), "--threads", "1", "--dtype", "float32"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENV,
    ) as process:
        try:
            host = begun(process)
            assert host.get("/props").json["gguf"] == "weights dequantised to torch.float32"
            assert host.chat("Hello", max_tokens=2).status == 200
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("config", "weights", "options", "kind"),
    [
        ({"model_type": "zzama"}, None, (), "unsupported_arch"),
        (None, None, (), "missing_file"),
        (None, b"\x00" * 64, (), "corrupt"),
        (None, None, ("--max-model-len", "100000"), None),
        (None, None, ("--no-such-option",), "bad_flag"),
        (None, None, ("--device", "cuda"), "wrong_device"),
    ],
)
def test_what_does_not_load_ends_it_and_the_log_is_understood(
    tmp_path: Path, config: dict[str, str] | None, weights: bytes | None, options: tuple[str, ...], kind: str | None
) -> None:
    source, folder = model_path("safetensors"), tmp_path / "m"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    if weights is not None:
        (folder / "model.safetensors").write_bytes(weights)
    if kind is None:
        (folder / "model.safetensors").symlink_to(source / "model.safetensors")
    hidden = {**ENV, "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(
        argv(folder, "--threads", "1", *options), capture_output=True, timeout=300, env=hidden, check=False
    )
    assert ran.returncode == (2 if kind == "bad_flag" else 1)
    failure = explain_log((ran.stdout + ran.stderr).decode(errors="replace").splitlines())
    assert failure is not None
    if kind is not None:
        assert failure.kind == kind
    else:
        assert "100000" in failure.why


def has_gpu() -> bool:
    return Path("/dev/nvidiactl").exists()


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="no GPU here")
def test_on_a_gpu_torchs_own_memory_is_told(tmp_path: Path) -> None:
    with subprocess.Popen(
        argv(model_path("safetensors"), "--device", "cuda"), stdout=subprocess.PIPE, env=ENV
    ) as process:
        try:
            host = begun(process)
            loaded = host.get("/memory").json
            host.text("Once upon a time", max_tokens=64, temperature=0)
            after = host.get("/memory").json
            assert 269_000_000 < loaded["allocated_bytes"] < 400_000_000
            assert loaded["allocated_bytes"] <= loaded["reserved_bytes"] <= after["peak_reserved_bytes"]
            assert after["peak_allocated_bytes"] > loaded["allocated_bytes"]
            assert host.get("/props").json["device"].startswith("cuda")
        finally:
            process.kill()


def test_conversion_is_the_same_each_time_and_refuses_what_is_no_gguf(tmp_path: Path) -> None:
    script, python = host_script("convert_gguf.py"), str(engine_python("transformers"))
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model at all")
    for model in (broken, tmp_path / "absent.gguf"):
        ran = subprocess.run(
            [python, script, str(model), str(tmp_path / "out")], capture_output=True, env=ENV, check=False
        )
        assert ran.returncode == 1
    out = tmp_path / "again"
    ran = subprocess.run([python, script, str(model_path("gguf")), str(out)], capture_output=True, env=ENV, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.count(b"convert_gguf: ") == 4
    for path in out.iterdir():
        assert path.read_bytes() == (model_path("safetensors") / path.name).read_bytes()
        assert path.stat().st_mode & 0o444 == 0o444
    assert (out / "chat_template.jinja").is_file()
