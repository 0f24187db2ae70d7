"""What the installed engine told of itself, held against a model: architectures, operators, versions, GPUs."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.artifact.facts import ModelFacts, TensorRtFacts
from deploytui.artifact.onnx import missing_operators
from deploytui.engine.adapter import host_script, interpreter
from deploytui.engine.protocol import Engine, Probe, Probed
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure

MOST_NAMED = 8
ONNX_ENVIRONMENT = "onnxruntime-genai"
OVERRIDES = frozenset({"--hf-overrides", "--model-impl", "--json-model-override-args", "--config-format"})
"""Options of engines with which a profile names another model class than the files do."""


def onnx_probe(candidate: Candidate) -> Probe:
    """The question which operators the ONNX Runtime of the candidate's interpreter knows."""
    python = interpreter(candidate, ONNX_ENVIRONMENT)
    return Probe(argv=(python, host_script("probe_onnx.py")), env=candidate.env)


async def with_operators(
    ask: Callable[[Probe], Awaitable[Probed]], candidate: Candidate, facts: ModelFacts | None, probed: Probed | None
) -> Probed | None:
    """What was told, with the runtime's operators beside it where the model is an ONNX graph and the runtime tells."""
    if facts is None or facts.onnx is None or facts.faults or probed is None:
        return probed
    operators = (await ask(onnx_probe(candidate))).detail.get("onnx")
    return replace(probed, detail={**probed.detail, "onnx": operators}) if operators else probed


def told_failure(engine: Engine, candidate: Candidate, facts: ModelFacts, probed: Probed | None) -> Failure | None:
    """Why what is installed can't load the model; None when it may, or told nothing.

    Read from `probed.detail`: `architectures`, the list of those it knows; `onnx`, as `host/probe_onnx.py` tells.
    """
    return next(_failures(engine, candidate, facts, probed), None) if probed is not None else None


def _failures(engine: Engine, candidate: Candidate, facts: ModelFacts, probed: Probed) -> Iterator[Failure]:
    own_code = facts.custom_code and candidate.trust_remote_code
    if facts.architecture and not own_code and knows(facts, probed) is False and not _overridden(candidate):
        yield unknown_architecture(engine, facts, probed)
    runtime = probed.detail.get("onnx")
    if facts.onnx is not None and isinstance(runtime, dict):
        missing = missing_operators(facts.onnx, runtime)
        if missing:
            yield lacking_operators(engine, candidate, missing)
    if facts.tensorrt is not None and (failure := _other_version(candidate, facts.tensorrt, probed.version)):
        yield failure


def knows(facts: ModelFacts, probed: Probed | None) -> bool | None:
    """Whether the installed engine has code of its own for the model; None when it did not tell, or may run it anyway.

    GGUF files name architectures in llama.cpp's words, which other engines' registries don't list. A class it has is
    not enough where its configuration is the model's own code. A class it lacks may run by the Transformers beside it,
    or by a plug-in.
    """
    detail = probed.detail if probed is not None else {}
    listed = detail.get("architectures")
    if isinstance(listed, list) and listed and facts.format != "gguf":
        kinds = (*_words(detail, "model_types"), *_words(_fallback(detail), "model_types"))
        known_kind = facts.model_type in kinds
        if facts.architecture in listed:
            return True if known_kind or not kinds or facts.model_type is None else None
        otherwise = detail.get("plugins") or facts.architecture in _words(_fallback(detail), "architectures")
        return None if otherwise or known_kind else False
    match detail.get("model_type"):
        case {"known": bool(known)}:
            return known
        case _:
            return None


def told_notes(engine: Engine, candidate: Candidate, facts: ModelFacts | None, probed: Probed | None) -> Iterator[str]:
    """What to know of an architecture that the installed engine's own registry does not list."""
    detail = probed.detail if probed is not None else {}
    listed = _words(detail, "architectures")
    if facts is None or probed is None or facts.format == "gguf" or not listed or facts.architecture is None:
        return
    if facts.architecture in listed or _overridden(candidate):
        return
    lacks = f"{_version_of(engine, probed)} has no code of its own for {facts.architecture}"
    if facts.custom_code and candidate.trust_remote_code:
        yield f"{lacks}: it runs the model's own."
    elif facts.architecture in _words(_fallback(detail), "architectures"):
        yield f"{lacks}: it falls back to Transformers', which may be slower, or refuses it."
    elif plugins := _words(detail, "plugins"):
        yield f"{lacks}; one of its plug-ins may: {', '.join(plugins)}."
    else:
        yield f"{lacks}, and the Transformers beside it has none: it will probably refuse it."


def _fallback(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    found = detail.get("fallback")
    return found if isinstance(found, dict) else {}


def _words(detail: Mapping[str, Any], name: str) -> list[str]:
    found = detail.get(name)
    return found if isinstance(found, list) else []


def _overridden(candidate: Candidate) -> bool:
    """Whether the profile tells the engine itself which class to take."""
    return any(word.partition("=")[0] in OVERRIDES for word in candidate.args)


def _version_of(engine: Engine, probed: Probed) -> str:
    return f"{engine.title} {probed.version}" if probed.version else engine.title


def unknown_architecture(engine: Engine, facts: ModelFacts, probed: Probed) -> Failure:
    """The failure of a model whose kind this version of an engine does not know."""
    fallback = _fallback(probed.detail).get("version")
    beside = f" Neither is there one in the Transformers {fallback} beside it." if fallback else ""
    listed = _words(probed.detail, "architectures")
    return Failure(
        kind="unsupported_arch",
        what=f"{_version_of(engine, probed)} does not know the architecture {facts.architecture}.",
        why=f"It is not among the {len(listed)} of its registry.{beside}" if listed else "",
        fix="Take a newer version of the engine, or another engine.",
    )


def lacking_operators(engine: Engine, candidate: Candidate, missing: tuple[str, ...]) -> Failure:
    """The failure of a graph with operators that the runtime does not have."""
    more = len(missing) - MOST_NAMED
    names = ", ".join(missing[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return Failure(
        kind="unsupported_format",
        what=f"The installed runtime of {engine.title} lacks operators of {candidate.model}: {names}.",
        fix="Install a newer runtime, or convert the model again for this one.",
    )


def _other_version(candidate: Candidate, built: TensorRtFacts, installed: str | None) -> Failure | None:
    if not built.version or not installed or built.version == installed:
        return None
    return Failure(
        kind="unsupported_format",
        what=f"The engine {candidate.model} was built by TensorRT-LLM {built.version}, and {installed} is installed.",
        fix="Build it again with the installed version, or install the one that built it.",
    )


def other_gpu(candidate: Candidate, facts: ModelFacts, capability: tuple[int, int] | None) -> Failure | None:
    """The failure of a TensorRT engine built for another kind of GPU than the chosen one; None when nobody can tell."""
    built = facts.tensorrt.compute_capability if facts.tensorrt else None
    if built is None or capability is None or built == f"{capability[0]}.{capability[1]}":
        return None
    name = facts.tensorrt.built_for if facts.tensorrt else None
    return Failure(
        kind="unsupported_format",
        what=f"The engine {candidate.model} was built for compute capability {built} ({name}), "
        f"and the chosen GPU has {capability[0]}.{capability[1]}.",
        fix="Build it again on this GPU, or choose devices of the kind it was built for.",
    )
