"""A TensorRT-LLM engine folder: what it was built with, and whether all its ranks are there."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploytui.artifact.config import number
from deploytui.artifact.facts import Attention, ModelFacts, TensorRtFacts
from deploytui.artifact.reading import FaultError, absent, check_content, opened, read_json
from deploytui.artifact.weights import size_of
from deploytui.record.facts import Failure

Json = Mapping[str, Any]

CONFIG = "config.json"
MOST_RANKS = 1024
CAPABILITIES = (
    ("B200", "10.0"),
    ("GB200", "10.0"),
    ("H200", "9.0"),
    ("H100", "9.0"),
    ("H20", "9.0"),
    ("GH200", "9.0"),
    ("L40", "8.9"),
    ("L20", "8.9"),
    ("L4", "8.9"),
    ("A100", "8.0"),
    ("A30", "8.0"),
    ("A10", "8.6"),
    ("A40", "8.6"),
    ("V100", "7.0"),
)
"""Names of GPUs as builds write them → compute capability."""


def read_tensorrt(folder: Path) -> ModelFacts:
    """The engine in a folder."""
    try:
        config = read_json(folder / CONFIG)
    except FaultError as error:
        return ModelFacts(path=str(folder), format="tensorrt", tensorrt=TensorRtFacts(), faults=(error.failure,))
    model, build = _part(config, "pretrained_config"), _part(config, "build_config")
    facts = _build_facts(config, model, build, folder)
    return ModelFacts(
        path=str(folder),
        format="tensorrt",
        architecture=_word(model, "architecture"),
        bytes=size_of(folder.glob("*.engine")) or None,
        quantization=_quantization(model),
        context_length=facts.max_seq_len,
        attention=_attention(model),
        vocabulary=number(model, "vocab_size"),
        tensorrt=facts,
        faults=tuple(_faults(folder, facts, number(_part(model, "mapping"), "world_size"))),
    )


def capability_of(name: str | None) -> str | None:
    """The compute capability of a GPU by its name; None when the name tells none."""
    words = re.split(r"[^A-Z0-9]+", (name or "").upper())
    return next((capability for known, capability in CAPABILITIES if any(_is(word, known) for word in words)), None)


def _is(word: str, known: str) -> bool:
    """`L40S` is an L40, `L40` is no L4."""
    rest = word.removeprefix(known)
    return word.startswith(known) and not rest[:1].isdigit()


def _build_facts(config: Json, model: Json, build: Json, folder: Path) -> TensorRtFacts:
    mapping, cluster = _part(model, "mapping"), _word(_part(build, "auto_parallel_config"), "cluster_key")
    return TensorRtFacts(
        version=_word(config, "version"),
        tensor_parallel=number(mapping, "tp_size"),
        pipeline_parallel=number(mapping, "pp_size"),
        max_batch_size=number(build, "max_batch_size"),
        max_seq_len=number(build, "max_seq_len"),
        compute_capability=capability_of(cluster),
        built_for=cluster,
        dtype=_word(model, "dtype"),
        parallel_files=len(list(folder.glob("rank*.engine"))),
    )


def _part(config: Json, name: str) -> Json:
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _word(config: Json, name: str) -> str | None:
    value = config.get(name)
    return value if isinstance(value, str) and value else None


def _quantization(model: Json) -> str | None:
    told = _word(_part(model, "quantization"), "quant_algo")
    return told.lower() if told and told.upper() != "NO_QUANT" else None


def _attention(model: Json) -> Attention:
    heads, hidden = number(model, "num_attention_heads"), number(model, "hidden_size")
    return Attention(
        layers=number(model, "num_hidden_layers"),
        heads=heads,
        kv_heads=number(model, "num_key_value_heads") or heads,
        head_dim=number(model, "head_size") or (hidden // heads if hidden and heads else None),
        hidden_size=hidden,
    )


def _faults(folder: Path, facts: TensorRtFacts, world: int | None) -> Iterator[Failure]:
    ranks = world or (facts.tensor_parallel or 1) * (facts.pipeline_parallel or 1)
    for rank in range(min(ranks, MOST_RANKS)):
        path = folder / f"rank{rank}.engine"
        try:
            with opened(path) as (file, size):
                check_content(path, file.read(512), size)
        except FaultError as error:
            yield error.failure
    if ranks > MOST_RANKS:
        yield absent(folder / f"rank{ranks - 1}.engine").failure
