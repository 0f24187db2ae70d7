"""Which settings a running engine tells of itself, by what real ones answered and wrote; the others stay unknown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from deploytui.engine.protocol import Engine
from deploytui.engine.registry import engine_names, load_engine
from deploytui.profile.schema import Settings
from deploytui.record.facts import EngineFacts
from tests.engine.captured import answer, body, log

SETTINGS = frozenset(Settings.__struct_fields__)
WITHOUT = {"command", "mock", "openai"}
"""Engines whose settings are nobody's to read: a command's own words, the mock's, an endpoint that somebody started."""

VLLM, SGLANG, LLAMA = "vllm-0.32.0-cpu", "sglang-0.5.23-cpu", "llamacpp-server-xllamacpp-2026.10.11549"
HOST = {"slots": 2, "context_length": 8192, "threads": 1, "batching": "none", "device": "cpu"}
ON_GPU = [
    "load_tensors: offloaded 33/33 layers to GPU",
    "[TRT-LLM] [I] max_seq_len=8224, max_num_requests=64, max_num_tokens=8192, max_batch_size=64",
]
CACHE_BY_SHARE = (
    'vllm:cache_config_info{cache_dtype="fp8",enable_prefix_caching="False",gpu_memory_utilization="0.9"} 1.0'
)


@dataclass
class Told:
    """What one engine answered and wrote, what can be read of it, and what it has a word for and never tells."""

    read: str
    untold: str = ""
    answers: Mapping[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)


PARALLEL = "tensor_parallel pipeline_parallel data_parallel"
SERVERS = f"max_model_len max_num_seqs kv_cache_dtype prefix_cache chunked_prefill cuda_graphs memory_share {PARALLEL}"
TABLE = {
    "vllm": Told(
        read=SERVERS,
        untold="threads",
        answers={"/v1/models": answer(VLLM, "models"), "/metrics": CACHE_BY_SHARE},
        lines=log(VLLM, "startup-cold"),
    ),
    "sglang": Told(
        read=SERVERS,
        untold="threads",
        answers={"/server_info": answer(SGLANG, "server_info"), "/metrics": body(SGLANG, "metrics")},
        lines=log(SGLANG, "startup"),
    ),
    "llamacpp": Told(
        read="max_model_len max_num_seqs threads kv_cache_dtype gpu_layers",
        untold="prefix_cache",  # but by our own host round the llama_cpp package
        answers={"/props": answer(LLAMA, "props")},
        lines=[*log(LLAMA, "startup"), *log("llama-cpp-python-0.3.36", "startup-host"), ON_GPU[0]],
    ),
    "tensorrt-llm": Told(
        read="max_model_len max_num_seqs",
        untold="tensor_parallel pipeline_parallel memory_share chunked_prefill",
        answers={"/version": {"version": "1.2.1"}},
        lines=[ON_GPU[1]],
    ),
    "tgi": Told(
        read="max_model_len max_num_seqs",
        untold="tensor_parallel memory_share kv_cache_dtype cuda_graphs prefix_cache",
        answers={"/info": {"version": "3.3.5", "max_total_tokens": 4096, "max_batch_size": 8}},
    ),
    "transformers": Told(
        read="max_model_len max_num_seqs threads prefix_cache chunked_prefill",
        untold="cuda_graphs",
        answers={"/props": {**HOST, "prefix_cache": False, "chunked_prefill": False}},
    ),
    "onnxruntime-genai": Told(
        read="max_model_len max_num_seqs threads prefix_cache", answers={"/props": {**HOST, "prefix_cache": False}}
    ),
}


def told(engine: Engine, row: Told) -> dict[str, Any]:
    """The normalised settings that are read of it."""
    facts = engine.readback(EngineFacts(name=engine.name, served_model="smollm2"), row.answers)
    return {name: value for name, value in engine.readlog(facts, row.lines).settings.items() if name in SETTINGS}


def test_every_engine_is_in_the_table() -> None:
    assert set(engine_names()) == set(TABLE) | WITHOUT


@pytest.mark.parametrize("name", TABLE)
def test_what_can_be_read_is_read_and_the_rest_is_named(name: str) -> None:
    engine, row = load_engine(name), TABLE[name]
    assert set(told(engine, row)) == set(row.read.split())
    assert set(row.read.split()) | set(row.untold.split()) == engine.capabilities.settings
    assert not set(row.read.split()) & set(row.untold.split())


@pytest.mark.parametrize("name", TABLE)
def test_no_value_is_there_that_the_engine_did_not_write(name: str) -> None:
    row = TABLE[name]
    texts = [msgspec.json.encode(row.answers).decode().replace('\\"', '"'), *row.lines]
    words = {number for text in texts for number in re.findall(r"[\w.]+", text)}
    for setting, value in told(load_engine(name), row).items():
        assert isinstance(value, bool) or str(value) in words, setting


@pytest.mark.parametrize("name", sorted({*TABLE, *WITHOUT}))
def test_of_an_engine_that_tells_nothing_nothing_is_known(name: str) -> None:
    engine = load_engine(name)
    bare = EngineFacts(name=name, served_model="smollm2")
    answers: Any
    for answers in ({}, *(dict.fromkeys(engine.readback_paths, said) for said in (None, (), ""))):
        facts = engine.readlog(engine.readback(bare, answers), ["INFO ready", ""])
        assert replace(facts, simulated=False) == bare
