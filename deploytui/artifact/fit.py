"""Whether a model will fit: weights, KV cache and what comes on top, against the memory that is free."""

import math
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.kv_cache import KvShape, kv_shape, value_bytes
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import Fit
from deploytui.units import GIB

MIB = 1 << 20

CONTEXT_BYTES = 512 * MIB
"""A CUDA context with its libraries' handles; NVML shows about half a GiB for one on data-centre cards."""
GRAPHS_BYTES = 512 * MIB
"""Captured CUDA graphs; vLLM logs `Graph capturing finished …, took 0.5 GiB` for models of some billion parameters."""
BATCH_TOKENS = 8192
"""Tokens of the largest prefill step, as vLLM and SGLang choose by default on large cards."""
ACTIVATION_WIDTH = 12
"""Hidden-sized vectors alive for each token in a step: gate, up and down projection of a block, its input and output;
for an 8B model this comes to 0.8 GiB, where vLLM logs 0.6 to 1.2 GiB of peak activation."""
ACTIVATION_BYTES = 2
LOGIT_BYTES = 4
PROCESS_BYTES = {"gguf": 128 * MIB, "onnx": 192 * MIB}
"""A CPU process without its weights and cache: 60 and 130 MiB were measured, with room for compute buffers."""
OTHER_PROCESS_BYTES = 768 * MIB
"""The same of a Python process with torch loaded."""

DTYPE_BYTES = {
    "float32": 4.0,
    "fp32": 4.0,
    "f32": 4.0,
    "float": 4.0,
    "bfloat16": 2.0,
    "bf16": 2.0,
    "float16": 2.0,
    "fp16": 2.0,
    "f16": 2.0,
    "half": 2.0,
    "fp8": 1.0,
    "float8_e4m3fn": 1.0,
    "float8_e5m2": 1.0,
    "int8": 1.0,
}
"""Bytes of one weight by dtype."""

MAPPED = frozenset({"gguf", "onnx"})
"""Formats that are mapped from the file: on a host they can exceed memory, at a price, without failing."""


class Room(Struct, frozen=True, kw_only=True):
    """The memory a candidate gets."""

    on: Literal["gpu", "host"]
    free_bytes: int | None
    """Of the chosen device with the least free memory, or of the host."""
    total_bytes: int | None = None
    devices: int = 1
    reserve_bytes: int = 0
    """What can be had beside `free_bytes` when it must, such as swap."""


class Demand(Struct, frozen=True, kw_only=True):
    """What is asked of one device; parts nobody knows are None."""

    weights: int | None
    kv_cache: int | None
    kv_tokens: int
    overhead: int
    certain: bool = True
    """Whether the weights are at least this large."""

    @property
    def needed(self) -> int | None:
        """All together [bytes]; None when a part is not known."""
        if self.weights is None or self.kv_cache is None:
            return None
        return self.weights + self.kv_cache + self.overhead


def estimate(facts: ModelFacts, candidate: Candidate, room: Room, *, context_tokens: int, concurrency: int) -> Fit:
    """Whether a model fits into `room` as the candidate would run it.

    `context_tokens` is the longest request, `concurrency` the most of them at once. `cannot_fit` is only said when the
    weights alone exceed what there is; a KV cache that is too small makes an engine wait, preempt or refuse.
    """
    demand = _demand(facts, candidate, room, context_tokens, concurrency)
    limit, limit_why = _limit(candidate.settings, room)
    verdict, why = _judged(facts, demand, room, limit, limit_why)
    return Fit(
        verdict=verdict,
        weights_bytes=demand.weights,
        kv_cache_bytes=demand.kv_cache,
        kv_cache_tokens=demand.kv_tokens if demand.kv_cache is not None else None,
        overhead_bytes=demand.overhead,
        needed_bytes=demand.needed,
        free_bytes=room.free_bytes,
        on=room.on,
        devices=room.devices,
        why=why,
    )


def _demand(facts: ModelFacts, candidate: Candidate, room: Room, context_tokens: int, concurrency: int) -> Demand:
    settings = candidate.settings
    tensor, pipeline, data = _parallel(settings, room.devices)
    whole, certain = _weights(facts, candidate)
    shape = kv_shape(
        facts.attention,
        value_bytes(settings.kv_cache_dtype, candidate.dtype or facts.dtype),
        tensor=tensor,
        pipeline=pipeline,
    )
    sequences = max(1, math.ceil(min(concurrency, settings.max_num_seqs or concurrency) / data))
    length = settings.max_model_len or 0
    if facts.format == "gguf":
        # llama.cpp gives each slot its own context from the start, the others fill one pool.
        context_tokens = max(context_tokens, length)
    kv_cache, tokens = _kv_cache(shape, length, context_tokens, sequences)
    share = _offloaded(facts, settings) if room.on == "gpu" else 1.0
    return Demand(
        weights=None if whole is None else math.ceil(whole * share / (tensor * pipeline)),
        kv_cache=None if kv_cache is None else math.ceil(kv_cache * share),
        kv_tokens=tokens,
        overhead=_overhead(facts, settings, room, min(context_tokens * sequences, BATCH_TOKENS), sequences),
        certain=certain,
    )


def _parallel(settings: Settings, devices: int) -> tuple[int, int, int]:
    """How many devices share a layer, share the layers, and have copies; spare devices share the layers, too."""
    tensor, pipeline, data = (
        settings.tensor_parallel or 1,
        settings.pipeline_parallel or 1,
        settings.data_parallel or 1,
    )
    return tensor, max(pipeline, devices // (tensor * data)), data


def _weights(facts: ModelFacts, candidate: Candidate) -> tuple[int | None, bool]:
    """Bytes of all weights in memory, and whether they are at least that large."""
    stored = (facts.dtype or "").lower()
    size = facts.bytes
    if size is None and facts.parameters is not None and stored in DTYPE_BYTES:
        size = math.ceil(facts.parameters * DTYPE_BYTES[stored])
    if size is None or facts.quantization is not None or facts.format == "gguf":
        return size, True
    if candidate.quantization is not None:
        return size, False  # made smaller while it is loaded, by how much is the method's to say
    asked = (candidate.dtype or stored).lower()
    if asked in DTYPE_BYTES and stored in DTYPE_BYTES:
        return math.ceil(size * DTYPE_BYTES[asked] / DTYPE_BYTES[stored]), True
    return size, candidate.dtype in (None, "auto")


def _kv_cache(
    shape: KvShape | None, longest_tokens: int, context_tokens: int, sequences: int
) -> tuple[int | None, int]:
    """Bytes and tokens of the cache that keeps every request, and at least one of the longest that is allowed."""
    tokens = max(context_tokens * sequences, longest_tokens)
    if shape is None:
        return None, tokens
    return max(shape.bytes(context_tokens) * sequences, shape.bytes(longest_tokens)), tokens


def _offloaded(facts: ModelFacts, settings: Settings) -> float:
    """The part of the layers that is on the GPU; all where nobody says otherwise."""
    layers = facts.attention.layers
    if settings.gpu_layers is None or facts.format != "gguf" or not layers:
        return 1.0
    # llama.cpp counts the output layer as one more.
    return min(1.0, settings.gpu_layers / (layers + 1))


def _overhead(facts: ModelFacts, settings: Settings, room: Room, step_tokens: int, sequences: int) -> int:
    hidden = facts.attention.hidden_size or 0
    step = step_tokens * hidden * ACTIVATION_WIDTH * ACTIVATION_BYTES
    logits = sequences * (facts.vocabulary or 0) * LOGIT_BYTES
    if room.on == "host":
        return PROCESS_BYTES.get(facts.format or "", OTHER_PROCESS_BYTES) + step + logits
    graphs = 0 if settings.cuda_graphs is False or facts.format in MAPPED else GRAPHS_BYTES
    return CONTEXT_BYTES + graphs + step + logits


def _limit(settings: Settings, room: Room) -> tuple[int | None, str]:
    """What the engine may take of one device [bytes], and why it is not all that is free."""
    share, total = settings.memory_share, room.total_bytes
    if room.on == "host" or room.free_bytes is None or share is None or total is None:
        return room.free_bytes, ""
    asked = int(share * total)
    if asked > room.free_bytes:
        return room.free_bytes, (
            f"settings.memory_share = {share:g} asks for {asked / GIB:.1f} GiB of {total / GIB:.1f}, "
            f"and {room.free_bytes / GIB:.1f} GiB are free"
        )
    return asked, ""


Verdict = Literal["fits", "may_not_fit", "cannot_fit", "unknown"]


def _judged(facts: ModelFacts, demand: Demand, room: Room, limit: int | None, limit_why: str) -> tuple[Verdict, str]:
    if limit is not None and demand.weights is not None and demand.weights > limit:
        held = f"{demand.weights / GIB:.2f} GiB of weights and {limit / GIB:.2f} GiB of memory for them"
        return _too_large(facts, demand, room, limit), f"There are {held} on {_where(room)}."
    if missing := list(_missing(facts, demand, limit, room)):
        return "unknown", f"Not known: {', '.join(missing)}."
    assert limit is not None
    assert demand.needed is not None
    basis = f"With a KV cache for {demand.kv_tokens} tokens and {demand.overhead / GIB:.2f} GiB assumed on top"
    short = bool(limit_why) or demand.needed > limit
    return ("may_not_fit" if short else "fits"), f"{basis}{'; ' + limit_why if limit_why else ''}."


def _too_large(facts: ModelFacts, demand: Demand, room: Room, limit: int) -> Verdict:
    """Whether weights that exceed the limit are the end of it."""
    if not demand.certain or (room.on == "host" and facts.format in MAPPED):
        return "may_not_fit"
    assert demand.weights is not None
    return "cannot_fit" if demand.weights > limit + room.reserve_bytes else "may_not_fit"


def _missing(facts: ModelFacts, demand: Demand, limit: int | None, room: Room) -> Iterator[str]:
    if demand.weights is None:
        yield "how large the weights are"
    if demand.kv_cache is None:
        yield f"the shape of the KV cache of {facts.architecture or 'this model'}"
    if limit is None:
        yield f"the free memory of {_where(room)}"


def _where(room: Room) -> str:
    if room.on == "host":
        return "this host"
    return "the GPU" if room.devices == 1 else f"each of {room.devices} GPUs"
