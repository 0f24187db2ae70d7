"""What config.json tells of a model: pure, from the object in the file. Strange values count as not told."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from deploytui.artifact.attention import sliding_layers
from deploytui.artifact.facts import Attention
from deploytui.artifact.quantization import quantization_of

Json = Mapping[str, Any]

TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config", "text_model_config")
"""Where models of several modalities keep their language model."""

CONTEXT_NAMES = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length", "n_ctx")
NO_STRETCH = frozenset({"default", "llama3", "longrope", "su", "mrope"})
"""Kinds of rope scaling whose maximum is already the scaled one."""

KEYLESS = frozenset({"linear_attention", "mamba", "mamba2", "conv", "recurrent", "moe", "mlp"})
"""Kinds of layers that keep no keys and values."""

LARGEST = 1 << 40


class ConfigFacts(Struct, frozen=True, kw_only=True):
    """What config.json tells; each None where it does not."""

    architecture: str | None = None
    model_type: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    bits: int | None = None
    context_length: int | None = None
    attention: Attention = Attention()
    vocabulary: int | None = None
    experts: int | None = None
    active_experts: int | None = None
    tied: bool | None = None
    custom_code: bool = False
    notes: tuple[str, ...] = ()


def config_facts(config: Json) -> ConfigFacts:
    """The facts in a config.json."""
    text = text_part(config)
    method, bits = quantization_of(config, text)
    context, notes = _context(text)
    return ConfigFacts(
        architecture=_architecture(config, text),
        model_type=_word(config, "model_type") or _word(text, "model_type"),
        dtype=_dtype(text) or _dtype(config),
        quantization=method,
        bits=bits,
        context_length=context,
        attention=_attention(text),
        vocabulary=number(text, "vocab_size", "padded_vocab_size"),
        experts=number(text, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        active_experts=number(text, "num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_top_k"),
        tied=_flag(text, "tie_word_embeddings", config),
        custom_code=bool(config.get("auto_map")),
        notes=notes,
    )


def text_part(config: Json) -> Json:
    """The configuration of the language model, where it is a part of a larger one; else all of it."""
    for name in TEXT_PARTS:
        part = config.get(name)
        if isinstance(part, dict) and part:
            return {**config, **text_part(part)} if name == "thinker_config" else {**config, **part}
    return config


def number(config: Json, *names: str) -> int | None:
    """The first whole positive number under one of the names; None without one."""
    for name in names:
        value = config.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < LARGEST:
            return value
    return None


def _word(config: Json, name: str) -> str | None:
    value = config.get(name)
    return value if isinstance(value, str) and value else None


def _flag(config: Json, name: str, other: Json) -> bool | None:
    value = config.get(name, other.get(name))
    return value if isinstance(value, bool) else None


def _architecture(config: Json, text: Json) -> str | None:
    for part in (config, text):
        match part.get("architectures"):
            case [str(name), *_] if name:
                return name
    return None


def _dtype(config: Json) -> str | None:
    told = _word(config, "dtype") or _word(config, "torch_dtype")
    return told.removeprefix("torch.") if told and told != "auto" else None


def _context(config: Json) -> tuple[int | None, tuple[str, ...]]:
    """The longest context [tokens] with the stretching of its rope, as serving engines count it."""
    length = number(config, *CONTEXT_NAMES)
    scaling = config.get("rope_scaling") or config.get("rope_parameters")
    if length is None or not isinstance(scaling, dict):
        return length, ()
    kind = _word(scaling, "rope_type") or _word(scaling, "type") or "default"
    factor = scaling.get("factor")
    if kind in NO_STRETCH or isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 < factor < 1e6:
        return length, ()
    base = number(scaling, "original_max_position_embeddings") if kind == "yarn" else None
    stretched = max(length, int((base or length) * factor)) if base else int(length * factor)
    note = f"context: {base or length} tokens, stretched × {factor:g} by rope scaling {kind!r}."
    return stretched, (note,)


def _attention(config: Json) -> Attention:
    layers = number(config, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    heads = number(config, "num_attention_heads", "n_head", "num_heads", "n_heads")
    hidden = number(config, "hidden_size", "n_embd", "d_model", "dim")
    kept = _key_value_layers(config, layers)
    window = _window(config)
    rank = number(config, "kv_lora_rank")
    return Attention(
        layers=kept,
        heads=heads,
        kv_heads=_kv_heads(config, heads),
        head_dim=number(config, "head_dim", "kv_channels", "attention_head_dim")
        or (hidden // heads if hidden and heads else None),
        hidden_size=hidden,
        sliding_window=window,
        sliding_layers=_sliding(config, kept) if window else None,
        kv_lora_rank=rank,
        rope_head_dim=number(config, "qk_rope_head_dim") if rank else None,
    )


def _kv_heads(config: Json, heads: int | None) -> int | None:
    told = number(config, "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "n_kv_heads")
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):
        return 1
    return told or heads


def _kinds(config: Json) -> list[str]:
    told = config.get("layer_types") or config.get("layers_block_type")
    return [kind for kind in told if isinstance(kind, str)] if isinstance(told, list) else []


def _key_value_layers(config: Json, layers: int | None) -> int | None:
    """Layers with keys and values: of a hybrid model only those with attention."""
    if kinds := _kinds(config):
        return sum(kind not in KEYLESS for kind in kinds)
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        return pattern.count("*")
    chosen = config.get("attn_layer_indices")
    if isinstance(chosen, list):
        return len(chosen)
    every = number(config, "full_attention_interval", "attn_layer_period")
    return layers // every if layers and every else layers


def _window(config: Json) -> int | None:
    """Tokens that a sliding layer keeps; None when the model has none, or has it turned off."""
    if config.get("use_sliding_window") is False:
        return None
    return number(config, "sliding_window", "attention_chunk_size")


def _sliding(config: Json, layers: int | None) -> int | None:
    if kinds := _kinds(config):
        return sum(kind in ("sliding_attention", "chunked_attention") for kind in kinds)
    first = config.get("max_window_layers")
    if config.get("use_sliding_window") is True and isinstance(first, int) and layers is not None:
        return max(0, layers - first)
    kind = _word(config, "model_type")
    return sliding_layers(kind or "", layers, number(config, "sliding_window_pattern", "_sliding_window_pattern"))
