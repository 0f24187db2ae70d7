"""ONNX Runtime GenAI really serving the small model in int4, with one thread."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deploytui.engine.failures import explain_log
from tests.engines import engine_python, model_path
from tests.host.real_hosts import GREEDY, failing, serving, spoken, usage
from tests.host.toys import Toy

SCRIPT = "serve_onnx.py"
ENDS_SOON = "Say hi."
"""The model answers this in fewer than 100 tokens."""


@pytest.fixture(scope="module")
def host() -> Iterator[Toy]:
    options = ("--device", "cpu", "--max-num-seqs", "2", "--max-model-len", "512")
    with serving(engine_python("onnxruntime-genai"), SCRIPT, model_path("onnx"), *options) as started:
        yield started


def test_counts_are_those_of_the_token_ids(host: Toy) -> None:
    answer = host.chat(ENDS_SOON, max_tokens=100, **GREEDY)
    counts = usage(answer)
    assert answer.finishes[-1] == "stop"
    assert 1 < counts["completion_tokens"] < 100
    # Every token but the one that ends the answer has text, in a chunk of its own.
    texts = [delta["content"] for delta in answer.deltas if delta.get("content")]
    assert counts["completion_tokens"] - 1 == len(texts)
    assert "<|im_end|>" not in spoken(answer)


def test_ignore_eos_gives_exactly_what_is_asked_for(host: Toy) -> None:
    answer = host.chat(ENDS_SOON, max_tokens=100, ignore_eos=True, **GREEDY)
    assert answer.finishes[-1] == "length"
    assert usage(answer)["completion_tokens"] == 100
    stopped = spoken(host.chat(ENDS_SOON, max_tokens=100, **GREEDY))
    assert spoken(answer).startswith(stopped)


def test_what_does_not_fit_the_context_is_a_400(host: Toy) -> None:
    for asked in ({"prompt": "a " * 600}, {"prompt": "a", "max_tokens": 512}):
        answer = host.text(**asked)
        assert answer.status == 400
        assert answer.json["error"]["type"] == "exceed_context_size_error"
    assert host.text("a", max_tokens=511, temperature=0, stop=[" "]).status == 200


def test_ids_outside_of_the_vocabulary_are_a_400_and_the_engine_lives(host: Toy) -> None:
    for ids in ([1, 2, 49152], [2**40]):
        body = json.dumps({"model": "m", "prompt": ids, "max_tokens": 2}).encode()
        assert host.send("POST", "/v1/completions", body).status == 400
    assert host.text("a", max_tokens=2).status == 200


def test_a_seed_gives_the_same_text_again_and_sampling_without_one_varies(host: Toy) -> None:
    asked = {"max_tokens": 24, "temperature": 1.5, "top_p": 0.95}
    seeded = {host.text("Once", seed=7, **asked).json["choices"][0]["text"] for _ in range(2)}
    assert len(seeded) == 1
    free = {host.text("Once", **asked).json["choices"][0]["text"] for _ in range(4)}
    assert len(free) > 1


def test_what_it_can_not_follow_is_refused(host: Toy) -> None:
    for asked in ({"min_p": 0.5}, {"frequency_penalty": 1.0}):
        assert host.text("a", max_tokens=2, **asked).status == 400


def test_requests_at_once_each_get_what_they_get_alone(host: Toy) -> None:
    alone = [host.chat(prompt, max_tokens=24, **GREEDY) for prompt in (ENDS_SOON, "Name three colours.")]
    with ThreadPoolExecutor(4) as pool:
        prompts = (ENDS_SOON, "Name three colours.") * 2
        together = list(pool.map(lambda prompt: host.chat(prompt, max_tokens=24, **GREEDY), prompts))
    assert [spoken(one) for one in together] == [spoken(one) for one in alone] * 2
    assert [usage(one) for one in together] == [usage(one) for one in alone] * 2


def test_it_says_how_it_runs_and_claims_no_memory_figures(host: Toy) -> None:
    props = host.get("/props").json
    assert props["engine"] == "onnxruntime-genai"
    assert set(props["versions"]) == {"onnxruntime-genai", "onnxruntime"}
    assert (props["slots"], props["context_length"], props["threads"], props["device"]) == (2, 512, 1, "cpu")
    assert "take turns" in props["batching"]
    assert set(host.get("/memory").json.values()) == {None}


def test_the_librarys_batching_engine_counts_the_same(host: Toy) -> None:
    options = ("--device", "cpu", "--max-num-seqs", "2", "--batching", "engine")
    with serving(engine_python("onnxruntime-genai"), SCRIPT, model_path("onnx"), *options) as batched:
        assert "static batches" in batched.get("/props").json["batching"]
        for asked in ({"max_tokens": 100}, {"max_tokens": 60, "ignore_eos": True}):
            one, other = (each.chat(ENDS_SOON, **asked, **GREEDY) for each in (host, batched))
            assert (spoken(one), usage(one)) == (spoken(other), usage(other))
        assert batched.text("a", max_tokens=2, seed=1).status == 400


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_folder_that_is_none_is_explained_in_the_librarys_words(tmp_path: Path, device: str) -> None:
    ended = failing(engine_python("onnxruntime-genai"), SCRIPT, tmp_path / "none", "--device", device)
    assert ended.returncode == 1
    failure = explain_log(ended.stdout.splitlines())
    assert failure is not None
    assert failure.kind == "missing_file"


def test_cuda_without_it_ends_the_host_and_is_never_the_cpu() -> None:
    ended = failing(engine_python("onnxruntime-genai"), SCRIPT, model_path("onnx"), "--device", "cuda")
    assert ended.returncode == 1
    failure = explain_log(ended.stdout.splitlines())
    assert failure is not None
    assert failure.kind == "wrong_device"
    assert "Cuda interface not available" in failure.why


def test_cut_weights_and_an_unknown_type_are_explained(tmp_path: Path) -> None:
    cut, strange = tmp_path / "cut", tmp_path / "strange"
    for folder in (cut, strange):
        shutil.copytree(model_path("onnx"), folder)
    with (cut / "model.onnx.data").open("r+b") as weights:
        weights.truncate(1 << 20)
    config = strange / "genai_config.json"
    config.write_text(config.read_text().replace('"llama"', '"zzama"'), encoding="utf-8")
    kinds = []
    for folder in (cut, strange):
        ended = failing(engine_python("onnxruntime-genai"), SCRIPT, folder, "--device", "cpu")
        failure = explain_log(ended.stdout.splitlines())
        kinds.append((ended.returncode, failure.kind if failure else ended.stdout[-500:]))
    assert kinds == [(1, "corrupt"), (1, "unsupported_arch")]


def test_a_longer_context_than_the_models_is_refused() -> None:
    ended = failing(engine_python("onnxruntime-genai"), SCRIPT, model_path("onnx"), "--max-model-len", "9000")
    assert ended.returncode == 1
    assert "8192" in ended.stdout
    failure = explain_log(ended.stdout.splitlines())
    assert failure is not None
    assert failure.kind == "invalid_config"
