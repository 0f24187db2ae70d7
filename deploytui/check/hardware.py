"""Where a candidate would be placed, and whether it fits there."""

from collections.abc import Iterator

from msgspec import Struct

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.fit import Room, estimate
from deploytui.check.devices import choose, use_notes
from deploytui.check.node import GpuNow, Node
from deploytui.engine.container import runtime_failure
from deploytui.engine.protocol import Engine
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure, Fit

DTYPE_NAMES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp32": "float32", "float": "float32"}
INSTEAD = {"bfloat16": 'Set dtype = "float16"'}


class Needs(Struct, frozen=True, kw_only=True):
    """What the workload asks of an engine."""

    context_tokens: int
    """Prompt and output of the longest request."""
    concurrency: int
    """The most requests in flight."""


class Hardware(Struct, frozen=True, kw_only=True):
    """A candidate's place; `failure` says why it has none."""

    gpu_uuids: tuple[str, ...] = ()
    fit: Fit | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()


def hardware(engine: Engine, candidate: Candidate, facts: ModelFacts | None, node: Node, needs: Needs) -> Hardware:
    """The place of a candidate on this node."""
    if failure := runtime_failure(candidate):
        return Hardware(failure=failure)
    chosen = choose(engine, candidate, facts, node)
    if isinstance(chosen, Failure):
        return Hardware(failure=chosen)
    if failure := next(_unable(engine, candidate, facts, chosen), None):
        return Hardware(failure=failure)
    fit = _fit(candidate, facts, chosen, node, needs)
    if fit is not None and fit.verdict == "cannot_fit":
        return Hardware(fit=fit, failure=_cannot_fit(candidate, fit))
    return Hardware(
        gpu_uuids=tuple(gpu.uuid for gpu in chosen),
        fit=fit,
        notes=(*use_notes(chosen, node), *_dtype_notes(engine, candidate, facts, chosen), *_fit_notes(fit)),
    )


def _unable(
    engine: Engine, candidate: Candidate, facts: ModelFacts | None, chosen: tuple[GpuNow, ...]
) -> Iterator[Failure]:
    """What one of the GPUs is too old for."""
    least = engine.capabilities.compute_capability
    for gpu in chosen:
        has = gpu.compute_capability
        if has is None:
            continue
        if least is not None and has < least:
            yield Failure(
                kind="wrong_device",
                what=f"{engine.title} needs compute capability {_version(least)}, and {_named(gpu)} has "
                f"{_version(has)}.",
                fix="Choose another GPU with `devices`, or an engine that runs on this one.",
            )
        for key, word in _asked(candidate):
            if (needed := engine.capabilities.dtype_capability.get(word)) is not None and has < needed:
                yield _too_old(engine, gpu, key, word, needed)
        built = facts.tensorrt.compute_capability if facts and facts.tensorrt else None
        if built is not None and built != _version(has):
            yield Failure(
                kind="wrong_device",
                what=f"The TensorRT engine was built for compute capability {built}, and {_named(gpu)} has "
                f"{_version(has)}.",
                fix="Build it again on this GPU, or choose another one with `devices`.",
            )


def _asked(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """The profile's words that name a dtype, with their keys."""
    words = {
        "dtype": candidate.dtype,
        "quantization": candidate.quantization,
        "settings.kv_cache_dtype": candidate.settings.kv_cache_dtype,
    }
    for key, word in words.items():
        if word is not None:
            yield key, DTYPE_NAMES.get(word.lower(), word.lower())


def _too_old(engine: Engine, gpu: GpuNow, key: str, word: str, needed: tuple[int, int]) -> Failure:
    has = gpu.compute_capability or (0, 0)
    return Failure(
        kind="unsupported_dtype",
        what=f"{engine.title} needs compute capability {_version(needed)} for {word}, and {_named(gpu)} has "
        f"{_version(has)}.",
        fix=f"{INSTEAD.get(word, f'Change `{key}`')}, or choose another GPU with `devices`.",
    )


def _dtype_notes(
    engine: Engine, candidate: Candidate, facts: ModelFacts | None, chosen: tuple[GpuNow, ...]
) -> Iterator[str]:
    """The model's own dtype, where nobody asked for one and a GPU is too old for it: engines may take another."""
    stored = facts.dtype if facts and candidate.dtype in (None, "auto") else None
    word = DTYPE_NAMES.get(stored or "", stored or "")
    needed = engine.capabilities.dtype_capability.get(word)
    for gpu in chosen:
        if needed is not None and gpu.compute_capability is not None and gpu.compute_capability < needed:
            offered = f" {INSTEAD[word]}." if word in INSTEAD else ""
            yield (
                f"The model's dtype is {word}, which needs compute capability {_version(needed)}; {_named(gpu)} has "
                f"{_version(gpu.compute_capability)}, so the engine may refuse it or take another.{offered}"
            )
            return


def _fit(
    candidate: Candidate, facts: ModelFacts | None, chosen: tuple[GpuNow, ...], node: Node, needs: Needs
) -> Fit | None:
    if facts is None:
        return None
    return estimate(
        facts,
        candidate,
        _room(candidate, chosen, node),
        context_tokens=needs.context_tokens,
        concurrency=needs.concurrency,
    )


def _room(candidate: Candidate, chosen: tuple[GpuNow, ...], node: Node) -> Room:
    if not chosen or candidate.settings.gpu_layers == 0:
        return Room(on="host", free_bytes=node.host_free_bytes, reserve_bytes=node.swap_free_bytes)
    free = [gpu.free_bytes for gpu in chosen]
    known = [count for count in free if count is not None]
    least = min(known) if len(known) == len(free) else None
    total = next((gpu.total_bytes for gpu in chosen if gpu.free_bytes == least), None)
    return Room(on="gpu", free_bytes=least, total_bytes=total, devices=len(chosen))


def _cannot_fit(candidate: Candidate, fit: Fit) -> Failure:
    where = "the memory of this host" if fit.on == "host" else "its GPU" if fit.devices == 1 else "its GPUs"
    more = "" if fit.on == "host" else ", or spread it over more GPUs with settings.tensor_parallel"
    return Failure(
        kind="wrong_device",
        what=f"The weights of {candidate.name} do not fit into {where}.",
        why=fit.why,
        fix=f"Take a smaller or more strongly quantised model{more}.",
    )


def _fit_notes(fit: Fit | None) -> Iterator[str]:
    if fit is not None and fit.verdict == "may_not_fit":
        yield f"It may not fit. {fit.why} Lower settings.max_model_len, max_num_seqs or the workload's concurrency."


def _version(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def _named(gpu: GpuNow) -> str:
    return f"GPU {gpu.index} ({gpu.name})"
