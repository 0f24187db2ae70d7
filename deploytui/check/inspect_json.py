"""The facts of a model as JSON: units in the names, null for what nobody tells."""

from collections.abc import Sequence
from typing import Any

import msgspec

from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.kv_cache import DEFAULT_BYTES, kv_shape, value_bytes
from deploytui.check.loaders import Loader
from deploytui.record.facts import Failure

SCHEMA = "deploytui.model/1"


def inspected_json(facts: ModelFacts, loaders: Sequence[Loader]) -> dict[str, Any]:
    """One object with all that is known."""
    return {
        "schema": SCHEMA,
        "path": facts.path,
        "format": facts.format,
        "architecture": facts.architecture,
        "model_type": facts.model_type,
        "parameters": facts.parameters,
        "weights_bytes": facts.bytes,
        "dtype": facts.dtype,
        "quantization": facts.quantization,
        "mix_bytes": facts.mix,
        "context_tokens": facts.context_length,
        "vocabulary_tokens": facts.vocabulary,
        "attention": _fields(facts.attention, sliding_window="sliding_window_tokens"),
        "kv_cache": kv_cache(facts),
        "experts": facts.experts,
        "active_experts": facts.active_experts,
        "tied_embeddings": facts.tied,
        "custom_code": facts.custom_code,
        "pickled": facts.pickled,
        "tokenizer": _tokenizer(facts),
        "onnx": _fields(facts.onnx),
        "tensorrt": _fields(facts.tensorrt, max_seq_len="max_seq_len_tokens"),
        "files": [_fields(file) for file in facts.files],
        "faults": [_failure(fault) for fault in facts.faults],
        "notes": list(facts.notes),
        "engines": [_loader(loader) for loader in loaders],
    }


def kv_cache(facts: ModelFacts) -> dict[str, Any]:
    """Bytes of the cache: a token for good, a token within the window, and a whole context."""
    value = value_bytes(None, facts.dtype) if facts.dtype else DEFAULT_BYTES
    shape = kv_shape(facts.attention, value)
    context = facts.context_length
    return {
        "value_bytes": value,
        "bytes_per_token": shape.full if shape else None,
        "sliding_bytes_per_token": shape.sliding if shape else None,
        "window_tokens": shape.window if shape else None,
        "full_context_bytes": shape.bytes(context) if shape and context else None,
    }


def _tokenizer(facts: ModelFacts) -> dict[str, Any]:
    told = facts.tokenizer
    return {
        "kind": told.kind,
        "vocabulary_tokens": told.vocabulary,
        "sha256": told.sha256,
        "template_sha256": told.template_sha256,
        "template": told.template,
    }


def _fields(part: msgspec.Struct | None, **names: str) -> dict[str, Any] | None:
    """All fields of a record, also those with their defaults; `names` gives some of them another name."""
    if part is None:
        return None
    return {names.get(name, name): getattr(part, name) for name in part.__struct_fields__}


def _failure(failure: Failure) -> dict[str, Any]:
    return {"kind": failure.kind, "what": failure.what, "why": failure.why or None, "fix": failure.fix or None}


def _loader(loader: Loader) -> dict[str, Any]:
    return {
        "engine": loader.engine,
        "title": loader.title,
        "loads": loader.failure is None,
        "preparation": loader.preparation,
        "failure": _failure(loader.failure) if loader.failure else None,
    }
