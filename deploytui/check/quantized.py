"""How a checkpoint is quantised, against what the candidate asks for and the engine can use."""

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.gguf_types import PLAIN, QUANTIZATIONS
from deploytui.artifact.quantization import method_of
from deploytui.engine.protocol import Engine
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure

WHILE_LOADING = frozenset({"fp8", "bitsandbytes", "torchao", "eetq", "quanto", "hqq", "int8", "experts-int8", "mxfp8"})
"""Methods that engines apply to plain weights as they load them."""

PLAIN_WORDS = frozenset({"none", "no", "auto", *(name.lower() for name in PLAIN), *PLAIN.values(), "fp16", "fp32"})

GGUF_WORDS = frozenset(name.lower() for name in QUANTIZATIONS.values())


def quantization_failure(engine: Engine, candidate: Candidate, facts: ModelFacts) -> Failure | None:
    """The failure of a method that the checkpoint does not have, or that the engine can't use; None when it fits."""
    found = facts.quantization
    if (asked := candidate.quantization) is not None and (failure := _contradiction(asked, candidate, facts)):
        return failure
    known = engine.capabilities.quantizations
    if found is None or known is None or facts.format in ("gguf", "onnx", "tensorrt"):
        return None
    if method_of(found) in {method_of(name) for name in known}:
        return None
    return Failure(
        kind="unsupported_quant",
        what=f"{engine.title} can't load {candidate.model}: it is quantised with {found}.",
        fix=f"It loads {', '.join(sorted(known))}.",
    )


def _contradiction(asked: str, candidate: Candidate, facts: ModelFacts) -> Failure | None:
    method, found = method_of(asked), facts.quantization
    if asked.lower() in PLAIN_WORDS:
        return None if found is None else _named(candidate, asked, found)
    if facts.format == "gguf":
        fits = asked.lower() in GGUF_WORDS or method == "gguf"
        return None if fits else _named(candidate, asked, found or facts.dtype or "plain GGUF")
    if facts.format in ("onnx", "tensorrt") or (asked.lower() in GGUF_WORDS and found is None):
        return None
    if found is None:
        return None if method in WHILE_LOADING else _named(candidate, asked, "not quantised")
    return None if method_of(found) == method else _named(candidate, asked, found)


def _named(candidate: Candidate, asked: str, found: str) -> Failure:
    return Failure(
        kind="invalid_config",
        what=f"The candidate says quantization = {asked!r}, and {candidate.model} is {found}.",
        fix="Leave quantization out to take the model as it is, or name another model.",
    )
