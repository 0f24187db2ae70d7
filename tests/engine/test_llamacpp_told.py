"""What a running llama.cpp tells: recorded metrics and logs, and the answers of our own host."""

import pytest

from deploytui.engine.llamacpp import LlamaCpp
from deploytui.engine.metric_values import reading
from deploytui.record.facts import EngineFacts
from tests.engine.captured import DATA, log

ENGINE = LlamaCpp()
FACTS = EngineFacts(name="llamacpp")
SERVER = "llamacpp-server-xllamacpp-2026.10.11549"
METRICS = (DATA / "captures" / SERVER / "metrics.raw").read_text(encoding="utf-8").replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("figure", "value"),
    [("running", 0), ("waiting", 0), ("prompt_tokens", 49), ("output_tokens", 56), ("prefix_hits", 24)],
)
def test_its_metrics_are_found_by_name(figure: str, value: float) -> None:
    found = reading(ENGINE.metrics, figure, METRICS)
    assert found is not None
    assert found.value == value


def test_what_this_version_does_not_tell_is_missing_and_not_zero() -> None:
    assert reading(ENGINE.metrics, "kv_usage", METRICS) is None


def test_the_metrics_of_our_host_round_llama_cpp_are_known_too() -> None:
    found = reading(ENGINE.metrics, "waiting", "deploytui_host:requests_waiting 3\n")
    assert found is not None
    assert found.value == 3


def test_the_log_tells_the_size_of_the_cache_and_of_the_buffers() -> None:
    facts = ENGINE.readlog(FACTS, log("llama-cpp-python-0.3.36", "startup-host"))
    assert facts.kv_cache == {"bytes": round(11.95 * 2**20)}
    assert facts.settings["model_buffer_bytes"] == round(92.10 * 2**20)
    assert facts.settings["compute_buffer_bytes"] == round(102.67 * 2**20)
    assert facts.settings["kv_cache_dtype"] == "q8_0"
    assert facts.settings["max_model_len"] == 1024


def test_the_log_of_the_server_tells_slots_and_threads() -> None:
    facts = ENGINE.readlog(FACTS, log(SERVER, "startup"))
    assert facts.settings == {"max_num_seqs": 2, "max_model_len": 1024, "threads": 2}
    assert facts.kv_cache == {"slots": 2, "tokens_per_slot": 1024, "tokens": 2048}


def test_buffers_of_several_gpus_are_added_and_layers_counted() -> None:
    lines = [
        "load_tensors: offloaded 33/33 layers to GPU",
        "llama_kv_cache:      CUDA0 KV buffer size =   512.00 MiB",
        "llama_kv_cache:      CUDA1 KV buffer size =   256.00 MiB",
        "llama_kv_cache:      CUDA1 KV buffer size =   512.00 MiB",
    ]
    facts = ENGINE.readlog(FACTS, lines)
    assert facts.kv_cache == {"bytes": 1 << 30}
    assert facts.settings == {"gpu_layers": 33}


def test_what_an_answer_told_is_not_changed_by_the_log() -> None:
    told = EngineFacts(name="llamacpp", settings={"max_model_len": 7})
    assert ENGINE.readlog(told, log(SERVER, "startup")).settings["max_model_len"] == 7


def test_our_host_tells_how_it_batches_and_its_one_slot() -> None:
    props = {
        **{"engine": "llamacpp", "version": "0.3.36", "batching": "none: one", "slots": 1, "context_length": 512},
        **{"threads": 1, "prefix_cache": True},
    }
    facts = ENGINE.readback(FACTS, {"/props": props})
    assert facts.version == "0.3.36"
    assert facts.settings["batching"] == "none: one"
    assert facts.settings["max_model_len"] == 512
    assert facts.kv_cache == {"slots": 1, "tokens_per_slot": 512, "tokens": 512}
