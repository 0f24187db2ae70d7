"""What a running SGLang tells of itself: in its answers, and in its log."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.engine.metric_values import series
from deploytui.engine.told import added, count, listed_context, seconds, version_told, words_of
from deploytui.record.facts import EngineFacts

ARGUMENTS = {
    "context_length": "max_model_len",
    "tp_size": "tensor_parallel",
    "pp_size": "pipeline_parallel",
    "dp_size": "data_parallel",
    "mem_fraction_static": "memory_share",
    "max_running_requests": "max_num_seqs",
    "kv_cache_dtype": "kv_cache_dtype",
    "dtype": "dtype",
    "quantization": "quantization",
    "attention_backend": "attention_backend",
    "sampling_backend": "sampling_backend",
    "schedule_policy": "schedule_policy",
    "chunked_prefill_size": "chunked_prefill_size",
    "random_seed": "seed",
}
"""SGLang's own words → ours. Nothing else of its arguments is taken: they may hold a key."""

INVERTED = {"disable_radix_cache": "prefix_cache", "disable_cuda_graph": "cuda_graphs"}
"""Its words for what we call by the contrary."""

_ARGUMENT = re.compile(rf"'({'|'.join((*ARGUMENTS, *INVERTED))})': ('[^']*'|[\w.+-]+)")
_GRAPH_BACKEND = re.compile(r"'cuda_graph_config': \{'decode': \{'backend': '(\w+)'")
_POOL = re.compile(r"max_total_num_tokens=(\d+)")
_REQUESTS = re.compile(r"max_running_requests=(\d+)")
_CONTEXT = re.compile(r"context_len=(\d+)")
_CACHE_DTYPE = re.compile(r"KV Cache is allocated\. dtype: torch\.(\w+)")
_SIZES = re.compile(r"KV Cache is allocated\..*K size: ([\d.]+) GB, V size: ([\d.]+) GB")
_SIZE = re.compile(r"KV Cache is allocated\..*KV size: ([\d.]+) GB")
_ON_CPU = re.compile(r"'device': 'cpu'")
CACHE_SIZE = "sglang:kv_cache_memory_usage_gb"
_WEIGHTS = re.compile(r"Load weight end\..*?elapsed=([\d.]+) s.*mem usage=(-?[\d.]+) GB")
_GRAPHS = re.compile(r"Capture .*(?:cuda|CUDA) graph end\..*?([\d.]+) s.*mem usage=([\d.]+) GB")
GB = 1 << 30
"""What SGLang calls GB."""


def from_answers(facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
    """The facts with version, resolved arguments and KV cache as the server answers them."""
    told = (answers.get(path) for path in ("/server_info", "/get_server_info"))
    server: dict[str, Any] = next((answer for answer in told if isinstance(answer, dict)), {})
    settings = {
        **listed_context(answers.get("/v1/models"), facts.served_model),
        **_model_told(answers.get("/model_info")),
        **dict(_arguments(server)),
    }
    told_cache = {"tokens": count(server.get("max_total_num_tokens")), "bytes": _cache_bytes(answers.get("/metrics"))}
    kv_cache = {name: value for name, value in told_cache.items() if value is not None}
    return replace(
        facts,
        version=facts.version or version_told(server),
        settings={**facts.settings, **settings},
        kv_cache={**facts.kv_cache, **kv_cache},
    )


def _cache_bytes(metrics: Any) -> int | None:
    """The KV cache of one rank [bytes], more exact than the log has it."""
    told = series(metrics, CACHE_SIZE) if isinstance(metrics, str) else ()
    return next((size for _, value in told if (size := _bytes(value))), None)


def _arguments(told: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, ours in ARGUMENTS.items():
        value = told.get(name)
        if isinstance(value, str | int | float) and (name, value) != ("kv_cache_dtype", "auto"):  # the log resolves it
            yield ours, value
    for name, ours in INVERTED.items():
        if isinstance(value := told.get(name), bool):
            yield ours, not value
    match told.get("cuda_graph_config"):  # what came of it, where that is told
        case {"decode": {"backend": str(backend)}}:
            yield "cuda_graphs", backend != "disabled"
    if type(size := told.get("chunked_prefill_size")) is int:
        yield "chunked_prefill", size > 0


def _model_told(answer: Any) -> dict[str, Any]:
    """Whether it has a prefix cache, as versions tell it that do not tell their arguments."""
    match answer:
        case {"embedding": {"cache": {"radix_cache_disabled": bool(disabled)}}}:
            return {"prefix_cache": not disabled}
        case _:
            return {}


def from_log(facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
    """The facts with what the log tells beside; what the server answered counts more."""
    settings: dict[str, Any] = {}
    kv_cache: dict[str, Any] = {}
    on_cpu = facts.device == "cpu"
    for line in log:
        if "server_args=" in line:
            on_cpu = on_cpu or _ON_CPU.search(line) is not None
            settings.update(_arguments({name: words_of(text) for name, text in _ARGUMENT.findall(line)}))
            if match := _GRAPH_BACKEND.search(line):
                settings["cuda_graphs"] = match[1] != "disabled"
        settings.update(_start_line(line))
        kv_cache.update(_cache_line(line))
        if match := _CACHE_DTYPE.search(line):
            settings.setdefault("kv_cache_dtype", match[1])
    if on_cpu:  # it is what the whole node had less of meanwhile, whoever took it
        settings.pop("weights_bytes", None)
    return added(facts, settings, kv_cache)


def _start_line(line: str) -> Iterator[tuple[str, Any]]:
    if "max_total_num_tokens=" in line:
        if match := _REQUESTS.search(line):
            yield "max_num_seqs", count(match[1])
        if match := _CONTEXT.search(line):
            yield "max_model_len", count(match[1])
    if match := _WEIGHTS.search(line):
        yield "weights_load_s", seconds(match[1])
        yield "weights_bytes", _bytes(match[2])
    if match := _GRAPHS.search(line):
        yield "graph_capture_s", seconds(match[1])
        yield "graph_capture_bytes", _bytes(match[2])


def _cache_line(line: str) -> Iterator[tuple[str, Any]]:
    if match := _POOL.search(line):
        yield "tokens", count(match[1])
    if match := _SIZES.search(line) or _SIZE.search(line):
        parts = [_bytes(text) for text in match.groups()]
        if size := sum(part for part in parts if part is not None):  # 0.00 GB is only too small for the log
            yield "bytes", size


def _bytes(text: Any) -> int | None:
    value = seconds(text)
    return None if value is None else round(value * GB)
