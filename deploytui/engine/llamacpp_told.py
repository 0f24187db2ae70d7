"""What a running llama.cpp tells of itself: its answers, and the lines it writes while it loads."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.engine.hosted import PROPS, from_props
from deploytui.engine.llamacpp_settings import Slots
from deploytui.engine.told import added
from deploytui.record.facts import EngineFacts

MIB = 1 << 20
MODELS = "/v1/models"

_BUFFER = re.compile(r"(\S+)\s+(KV|model|compute|output|RS) buffer size\s*=\s*([\d.]+) MiB")
_SLOTS = re.compile(r"n_slots = (\d+), n_ctx_slot = (\d+)")
_CONTEXT = re.compile(r"llama_context: n_ctx(?:_seq|_per_seq)\s*= (\d+)")
_THREADS = re.compile(r"n_threads = (\d+)")
_OFFLOADED = re.compile(r"offloaded (\d+)/\d+ layers to GPU")
_CACHE_TYPES = re.compile(r"K \((\w+)\):.*V \((\w+)\):")
NAMES = {
    "model": "model_buffer_bytes",
    "compute": "compute_buffer_bytes",
    "output": "output_buffer_bytes",
    "RS": "recurrent_state_bytes",
}


def from_answers(facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
    """Context per slot, slots, build and the model's own figures; from our own host, also how it batches."""
    props = answers.get(PROPS)
    if isinstance(props, dict) and "batching" in props:
        return _from_host(from_props(facts, answers))
    told = slots_told(props)
    settings = {**facts.settings, **_props_told(props), **_model_told(answers.get(MODELS))}
    version = facts.version or settings.get("build")
    return replace(facts, settings=settings, kv_cache={**facts.kv_cache, **_cache(told)}, version=version)


def _from_host(facts: EngineFacts) -> EngineFacts:
    match facts.settings:
        case {"max_model_len": int(tokens), "max_num_seqs": int(count)}:
            return replace(facts, kv_cache={**facts.kv_cache, **_cache(Slots(count=count, tokens=tokens))})
        case _:
            return facts


def _cache(told: Slots | None) -> dict[str, Any]:
    return {"slots": told.count, "tokens_per_slot": told.tokens, "tokens": told.total} if told else {}


def slots_told(props: Any) -> Slots | None:
    """What `/props` tells of slots and their context; None when it does not."""
    match props:
        case {"default_generation_settings": {"n_ctx": int(tokens)}, "total_slots": int(count)}:
            return Slots(count=count, tokens=tokens)
        case _:
            return None


def _props_told(props: Any) -> dict[str, Any]:
    if not isinstance(props, dict):
        return {}
    told = slots_told(props)
    slots = {"max_model_len": told.tokens, "max_num_seqs": told.count} if told else {}
    build = props.get("build_info")
    # A build outside of llama.cpp's own tree has no number, and says so in this way.
    known = {"build": build} if isinstance(build, str) and not build.startswith("b0-") else {}
    return {**slots, **known}


def _model_told(models: Any) -> dict[str, Any]:
    match models:
        case {"data": [{"meta": {**meta}}, *_]}:
            return {f"model_{key}": meta[key] for key in ("n_ctx_train", "n_params", "size", "ftype") if key in meta}
        case _:
            return {}


def from_log(facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
    """Bytes of weights, KV cache and compute buffers over all devices, slots, threads, layers on the GPU.

    A buffer that is written of twice, as a first try and its outcome, counts as the last one.
    """
    sizes: dict[tuple[str, str], int] = {}
    settings: dict[str, Any] = {}
    kv_cache: dict[str, Any] = {}
    for line in log:
        if match := _BUFFER.search(line):
            sizes[(match[2], match[1])] = round(float(match[3]) * MIB)
        _settings_line(line, settings, kv_cache)
    for kind in sorted({kind for kind, _ in sizes}):
        total = sum(size for (of, _), size in sizes.items() if of == kind)
        (kv_cache if kind == "KV" else settings)[NAMES.get(kind, "bytes")] = total
    return added(facts, settings, kv_cache)


def _settings_line(line: str, settings: dict[str, Any], kv_cache: dict[str, Any]) -> None:
    if match := _SLOTS.search(line):
        count, tokens = int(match[1]), int(match[2])
        settings.update(max_num_seqs=count, max_model_len=tokens)
        kv_cache.update(_cache(Slots(count=count, tokens=tokens)))
    if match := _CONTEXT.search(line):
        settings.setdefault("max_model_len", int(match[1]))
    if match := _THREADS.search(line):
        settings["threads"] = int(match[1])
    if match := _OFFLOADED.search(line):
        settings["gpu_layers"] = int(match[1])
    if (match := _CACHE_TYPES.search(line)) and match[1] == match[2]:
        settings["kv_cache_dtype"] = match[1]
