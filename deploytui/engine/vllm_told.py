"""What a running vLLM tells of itself: in its answers, and in its log."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.engine.metric_values import series
from deploytui.engine.told import added, count, gib_bytes, listed_context, seconds, version_told, words_of
from deploytui.record.facts import EngineFacts

CACHE_INFO = "vllm:cache_config_info"

CONFIG_LINE = "LLM engine (v"
ASKED_LINE = "non-default args: "
"""Nothing but numbers is taken of it: it may hold a key."""
CONFIG_WORDS = {
    "dtype": "dtype",
    "quantization": "quantization",
    "max_seq_len": "max_model_len",
    "tensor_parallel_size": "tensor_parallel",
    "pipeline_parallel_size": "pipeline_parallel",
    "data_parallel_size": "data_parallel",
    "enforce_eager": "enforce_eager",
    "kv_cache_dtype": "kv_cache_dtype",
    "enable_prefix_caching": "prefix_cache",
    "enable_chunked_prefill": "chunked_prefill",
    "seed": "seed",
}
"""vLLM's own words in the line it writes its configuration in → ours."""

_CONFIG = re.compile(rf"\b({'|'.join(CONFIG_WORDS)})=([\w.]+)")
_SEQUENCES = re.compile(r"'max_num_seqs': (\d+)")
_GRAPH_MODE = re.compile(r"'cudagraph_mode': <CUDAGraphMode\.(\w+)")
_CACHE = re.compile(r"KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x")
_AVAILABLE = re.compile(r"Available KV cache memory: ([\d.]+) GiB")
_GRAPHS = re.compile(r"Graph capturing finished in (\d+) secs, took ([\d.]+) GiB")
_MODEL = re.compile(r"Model loading took ([\d.]+) (?:GiB|GB)(?: memory)? and ([\d.]+) seconds")
_WEIGHTS = re.compile(r"Loading weights took ([\d.]+) seconds")
_BACKEND = re.compile(r"Using (\S+) (?:attention )?backend|Using (Flash Attention|FlashInfer|Triton) backend")
_INIT = re.compile(r"init engine \(.*\) took ([\d.]+) s")


def from_answers(facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
    """The facts with version, context and KV cache as the server answers them."""
    engines = _engines(answers.get("/metrics"))
    settings = {**listed_context(answers.get("/v1/models"), facts.served_model), **_cache_settings(engines)}
    return replace(
        facts,
        version=facts.version or version_told(answers.get("/version")),
        settings={**facts.settings, **settings},
        kv_cache={**facts.kv_cache, **_cache(engines)},
    )


def _engines(metrics: Any) -> tuple[dict[str, str], ...]:
    """The cache configuration of each engine process; data parallelism has several."""
    return tuple(labels for labels, _ in series(metrics, CACHE_INFO)) if isinstance(metrics, str) else ()


def _cache(engines: tuple[dict[str, str], ...]) -> dict[str, Any]:
    tokens = [_tokens(labels) for labels in engines]
    known = [number for number in tokens if number is not None]
    first = engines[0] if engines else {}
    told: dict[str, Any] = {
        "tokens": sum(known) if known and len(known) == len(engines) else None,
        "blocks": count(first.get("num_gpu_blocks")),
        "block_tokens": count(first.get("block_size")),
        "bytes": count(first.get("kv_cache_memory_bytes")),
        "engines": len(engines) if len(engines) > 1 else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _tokens(labels: Mapping[str, str]) -> int | None:
    """The cache of one engine process [tokens]; blocks times their size where it does not say so itself."""
    if (told := count(labels.get("kv_cache_size_tokens"))) is not None:
        return told
    blocks, size = count(labels.get("num_gpu_blocks")), count(labels.get("block_size"))
    return blocks * size if blocks is not None and size is not None else None


def _cache_settings(engines: tuple[dict[str, str], ...]) -> dict[str, Any]:
    if not engines:
        return {}
    labels = engines[0]
    told: dict[str, Any] = {
        "kv_cache_dtype": words_of(labels.get("cache_dtype")),
        "prefix_cache": words_of(labels.get("enable_prefix_caching")),
    }
    if count(labels.get("kv_cache_memory_bytes")) is None:  # a given size is used in place of the share
        told["memory_share"] = seconds(labels.get("gpu_memory_utilization"))
    return {name: value for name, value in told.items() if value is not None}


def from_log(facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
    """The facts with what the log tells beside; what the server answered counts more."""
    settings: dict[str, Any] = {}
    kv_cache: dict[str, Any] = {}
    for line in log:
        kv_cache.update(_cache_line(line))
        settings.update(_start_line(line))
    return added(facts, settings, kv_cache)


def _cache_line(line: str) -> Iterator[tuple[str, Any]]:
    if (match := _CACHE.search(line)) and (tokens := count(match[1])) is not None:
        yield "tokens", tokens
    if match := _CONCURRENCY.search(line):
        yield "max_concurrency", seconds(match[1])
    if match := _AVAILABLE.search(line):
        yield "bytes", gib_bytes(match[1])


def _start_line(line: str) -> Iterator[tuple[str, Any]]:
    if CONFIG_LINE in line:
        yield from _configuration(line)
    if ASKED_LINE in line and (match := _SEQUENCES.search(line)):
        yield "max_num_seqs", count(match[1])
    if match := _GRAPHS.search(line):
        yield "graph_capture_s", seconds(match[1])
        yield "graph_capture_bytes", gib_bytes(match[2])
    if match := _MODEL.search(line):
        yield "weights_bytes", gib_bytes(match[1])
        yield "model_load_s", seconds(match[2])
    if match := _WEIGHTS.search(line):
        yield "weights_load_s", seconds(match[1])
    if match := _BACKEND.search(line):
        yield "attention_backend", match[1] or match[2]
    if match := _INIT.search(line):
        yield "engine_init_s", seconds(match[1])


def _configuration(line: str) -> Iterator[tuple[str, Any]]:
    for name, text in _CONFIG.findall(line):
        value = words_of(text.removeprefix("torch."))
        if value is not None:
            yield CONFIG_WORDS[name], value
    if match := _GRAPH_MODE.search(line):  # a CPU has none, whatever enforce_eager says
        yield "cuda_graphs", match[1] != "NONE"
