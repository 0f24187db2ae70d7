"""A checkpoint as Transformers saves it: config.json, weights, tokenizer, each held against the others."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from deploytui.artifact.config import ConfigFacts, config_facts
from deploytui.artifact.facts import FileFact, ModelFacts, TokenizerFacts
from deploytui.artifact.listing import file_fact, list_files
from deploytui.artifact.pytorch import read_pickles, read_pytorch
from deploytui.artifact.quantization import described, producer_block
from deploytui.artifact.reading import FaultError, absent, read_json
from deploytui.artifact.safetensors import DTYPES
from deploytui.artifact.shards import notes_of, read_files, read_shards
from deploytui.artifact.tokenizer import read_tokenizer
from deploytui.artifact.weights import Weights, file_size
from deploytui.record.facts import Failure

CONFIG = "config.json"
OWN_LAYOUT = "params.json"
"""In Mistral's own layout, in place of config.json."""

LARGEST_CONFIG = 16 << 20

QUANTIZATION_FILES: tuple[tuple[str, Callable[[dict[str, Any]], Any]], ...] = (
    ("hf_quant_config.json", producer_block),
    ("quantize_config.json", lambda block: {"quant_method": "gptq", **block}),
    ("quant_config.json", lambda block: {"quant_method": "awq", **block}),
)
"""Where tools wrote the quantisation before config.json had a block for it."""


def read_checkpoint(folder: Path, kind: str, one: Path | None = None, *, weights: Weights | None = None) -> ModelFacts:
    """The checkpoint in a folder, of format `safetensors` or `pytorch`; only file `one` of it where that is given.

    Where `weights` are known from elsewhere, none are looked for.
    """
    faults: list[Failure] = []
    config = _config(folder, faults, needed=one is None)
    weights = weights or _weights(folder, kind, config, one)
    tokenizer, tokenizer_faults = read_tokenizer(folder)
    plain = config.quantization is None
    return ModelFacts(
        path=str(one or folder),
        format=kind,
        architecture=config.architecture,
        model_type=config.model_type,
        parameters=weights.parameters,
        bytes=weights.bytes,
        dtype=(_main_dtype(weights) or config.dtype) if plain else None,
        quantization=config.quantization,
        mix=weights.mix,
        context_length=config.context_length,
        attention=config.attention,
        vocabulary=config.vocabulary,
        experts=config.experts,
        active_experts=config.active_experts,
        tied=_tied(config, weights),
        whole=one is None,
        files=_files(folder, one),
        tokenizer=tokenizer,
        custom_code=config.custom_code or _tokenizer_code(folder),
        pickled=kind == "pytorch",
        faults=(*faults, *weights.faults, *tokenizer_faults),
        notes=(*config.notes, *_notes(folder, config, weights, tokenizer, kind, one)),
    )


def _config(folder: Path, faults: list[Failure], *, needed: bool) -> ConfigFacts:
    try:
        own = file_size(folder / OWN_LAYOUT) is not None and file_size(folder / CONFIG) is None
        if own:
            return config_facts(read_json(folder / OWN_LAYOUT, LARGEST_CONFIG))
        return _with_other_files(folder, config_facts(read_json(folder / CONFIG, LARGEST_CONFIG)))
    except FaultError as error:
        if needed or error.failure.kind != "missing_file":
            faults.append(error.failure)
        return ConfigFacts()


def _with_other_files(folder: Path, config: ConfigFacts) -> ConfigFacts:
    if config.quantization is not None:
        return config
    for name, block_of in QUANTIZATION_FILES:
        if file_size(folder / name) is not None and (block := block_of(read_json(folder / name, LARGEST_CONFIG))):
            method, bits = described(block)
            return replace(config, quantization=method, bits=bits)
    return config


def _weights(folder: Path, kind: str, config: ConfigFacts, one: Path | None) -> Weights:
    quantized = config.quantization is not None
    if kind == "pytorch":
        return read_pickles([one]) if one else read_pytorch(folder)
    if one is not None:
        return read_files([one], {}, config.bits, quantized=quantized)
    weights = read_shards(folder, config.bits, quantized=quantized)
    if not weights.files and not weights.faults:
        return Weights(faults=(no_weights(folder),))
    return weights


def no_weights(folder: Path) -> Failure:
    """The failure of a folder with a configuration and nothing to load."""
    if file_size(folder / "adapter_config.json") is not None:
        what = f"{folder.name} holds a LoRA adapter, not a model."
        return Failure(kind="unsupported_format", what=what, fix="Merge it into its model, and name the result.")
    failure = absent(folder / "model.safetensors").failure
    return Failure(kind="missing_file", what=f"There are no weights in {folder}.", why=failure.why, fix=failure.fix)


def _main_dtype(weights: Weights) -> str | None:
    return DTYPES.get(next(iter(weights.mix), ""))


def _tied(config: ConfigFacts, weights: Weights) -> bool | None:
    if config.tied is not None or not weights.tensors:
        return config.tied
    return not any(name.endswith("lm_head.weight") for name in weights.tensors)


def _files(folder: Path, one: Path | None) -> tuple[FileFact, ...]:
    if one is None:
        return list_files(folder)
    fact = file_fact(one, folder)
    return (fact,) if fact else ()


def _tokenizer_code(folder: Path) -> bool:
    try:
        path = folder / "tokenizer_config.json"
        return file_size(path) is not None and bool(read_json(path).get("auto_map"))
    except FaultError:
        return False


def _notes(
    folder: Path, config: ConfigFacts, weights: Weights, tokenizer: TokenizerFacts, kind: str, one: Path | None
) -> Iterator[str]:
    if kind == "safetensors" and one is None:
        yield from notes_of(folder, weights)
    main = _main_dtype(weights)
    if config.quantization is None and main and config.dtype in DTYPES.values() and main != config.dtype:
        yield f"dtype: {CONFIG} says {config.dtype}, and most weights are {main}."
    if config.tied and any(name.endswith("lm_head.weight") for name in weights.tensors):
        yield f"{CONFIG} says that the output uses the embedding's weights, and the files hold both."
    if config.vocabulary and tokenizer.vocabulary and tokenizer.vocabulary > config.vocabulary:
        yield f"The tokenizer has {tokenizer.vocabulary} tokens, the model {config.vocabulary}."
    if tokenizer.kind is None and one is None:
        yield "There is no tokenizer beside the weights."
