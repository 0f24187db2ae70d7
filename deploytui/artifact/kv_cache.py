"""How much a KV cache holds for each token, from what a model's files tell of its attention."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from deploytui.artifact.facts import Attention

DEFAULT_BYTES = 2.0
"""Of a value of the cache in the usual half precision."""

KV_BYTES: Mapping[str, float] = MappingProxyType(
    {
        "float32": 4.0,
        "f32": 4.0,
        "fp32": 4.0,
        "float16": 2.0,
        "f16": 2.0,
        "fp16": 2.0,
        "half": 2.0,
        "bfloat16": 2.0,
        "bf16": 2.0,
        "int8": 1.0,
        # ggml blocks of 32 values with a 2-byte scale, and in the _1 kinds a 2-byte minimum.
        "q8_0": 34 / 32,
        "q5_1": 24 / 32,
        "q5_0": 22 / 32,
        "q4_1": 20 / 32,
        "q4_0": 18 / 32,
        "iq4_nl": 18 / 32,
        "int4": 0.5,
        "nvfp4": 0.5625,
    }
)
"""Bytes of one value by the name of the cache's dtype."""


class KvShape(Struct, frozen=True, kw_only=True):
    """The cache of one device: bytes a token for layers that keep all of a sequence, and for those that slide."""

    full: float
    """Bytes each token of a sequence takes for good."""
    sliding: float = 0.0
    """Bytes each token takes while it is within the window."""
    window: int | None = None
    """Tokens a sliding layer keeps of a sequence."""

    def bytes(self, tokens: int) -> int:
        """Of one sequence of that many tokens."""
        return math.ceil(self.full * tokens + self.sliding * min(tokens, self.window or tokens))


def value_bytes(kv_cache_dtype: str | None, dtype: str | None) -> float:
    """Bytes of one cached value; without a dtype of its own the cache has the model's, where that is a plain one."""
    name = (kv_cache_dtype or "auto").lower()
    if name == "auto":
        return 4.0 if (dtype or "").lower() in ("float32", "fp32", "f32", "float") else DEFAULT_BYTES
    return 1.0 if name.startswith("fp8") else KV_BYTES.get(name, DEFAULT_BYTES)


def kv_shape(attention: Attention, value: float, *, tensor: int = 1, pipeline: int = 1) -> KvShape | None:
    """The cache of the fullest device when `tensor` devices share each layer and `pipeline` share the layers.

    None when the files do not tell its shape.
    """
    layers = attention.layers
    values = _values(attention, tensor)
    if layers is None or values is None:
        return None
    sliding = _sliding(attention, layers)
    per_layer = values * value
    share = math.ceil(layers / pipeline) / layers
    return KvShape(
        full=(layers - sliding) * share * per_layer,
        sliding=sliding * share * per_layer,
        window=attention.sliding_window,
    )


def _values(attention: Attention, tensor: int) -> int | None:
    """Values one layer caches of a token on one device."""
    if attention.kv_lora_rank is not None:
        # The compressed latent is shared by all heads, so tensor parallelism repeats it on every device.
        return attention.kv_lora_rank + (attention.rope_head_dim or 0)
    heads = attention.kv_heads or attention.heads
    size = attention.head_dim
    if size is None and attention.hidden_size and attention.heads:
        size = attention.hidden_size // attention.heads
    if heads is None or size is None:
        return None
    # With more devices than heads each head is repeated: a device holds at least one.
    return 2 * math.ceil(heads / tensor) * size


def _sliding(attention: Attention, layers: int) -> int:
    """How many layers slide; none where nobody tells which, so that the estimate is not too low."""
    if attention.sliding_window is None:
        return 0
    return min(attention.sliding_layers or 0, layers)
