"""How a checkpoint is quantised, from the block its configuration has for that, in one word such as `awq-4bit`."""

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

BLOCKS = ("quantization_config", "compression_config")
BITS_NAMES = ("bits", "w_bit", "num_bits", "wbits", "weight_bits")
WIDTH_IN_NAME = frozenset({"fp8", "mxfp4", "nvfp4", "fbgemm_fp8", "gguf"})
"""Methods whose name tells the width."""

NIBBLES = {"mxfp4": 4, "nvfp4": 4, "fp8": 8, "fbgemm_fp8": 8}


def quantization_of(*configs: Json) -> tuple[str | None, int | None]:
    """Method with width, and the bits of a weight; both None for plain weights, bits None where nobody tells."""
    for config in configs:
        for name in BLOCKS:
            block = config.get(name)
            if isinstance(block, dict) and block:
                return described(block)
    return None, None


def described(block: Json) -> tuple[str | None, int | None]:
    """As `quantization_of`, of one block."""
    method = _method(block)
    bits, kind = _bits(block)
    if method is None:
        return (f"{bits}bit" if bits else "unknown"), bits
    if method in WIDTH_IN_NAME:
        return method, NIBBLES.get(method, bits)
    if kind == "float" and bits:
        return f"{method}-fp{bits}", bits
    return (f"{method}-{bits}bit" if bits else method), bits


def producer_block(settings: Json) -> Json:
    """The block of an hf_quant_config.json, in the words of config.json."""
    block = settings.get("quantization")
    return {"quant_method": "modelopt", **block} if isinstance(block, dict) else {}


def method_of(label: str) -> str:
    """The method alone: `awq-4bit` is `awq`, also when it was written `AWQ_Marlin`."""
    word = label.strip().lower().replace("_", "-")
    for tail in ("-marlin", "-machete"):
        word = word.removesuffix(tail)
    head, _, tail = word.rpartition("-")
    return (
        head if head and (tail.endswith("bit") or tail[:2] in ("fp", "nf", "nv", "mx")) and head != "fbgemm" else word
    )


def _method(block: Json) -> str | None:
    told = block.get("quant_method") or block.get("quant_type")
    if isinstance(told, str) and told:
        return told.lower()
    if block.get("load_in_4bit") or block.get("load_in_8bit"):
        return "bitsandbytes"
    return None


def _bits(block: Json) -> tuple[int | None, str | None]:
    """Bits of a weight, and whether they are a float."""
    for name in BITS_NAMES:
        if (bits := _width(block.get(name))) is not None:
            return bits, None
    if block.get("load_in_4bit") is True or block.get("_load_in_4bit") is True:
        return 4, None
    if block.get("load_in_8bit") is True or block.get("_load_in_8bit") is True:
        return 8, None
    algorithm = block.get("quant_algo")
    if isinstance(algorithm, str):
        return _algorithm(algorithm.upper())
    found = {pair for group in _groups(block) if (pair := _group(group)) is not None}
    return found.pop() if len(found) == 1 else (None, None)


def _algorithm(name: str) -> tuple[int | None, str | None]:
    for word, bits, kind in (("FP8", 8, "float"), ("FP4", 4, "float"), ("W4", 4, None), ("W8", 8, None)):
        if word in name:
            return bits, kind
    return None, None


def _groups(block: Json) -> Iterator[Json]:
    groups = block.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            yield weights


def _group(weights: Json) -> tuple[int, str | None] | None:
    bits, kind = _width(weights.get("num_bits")), weights.get("type")
    return (bits, kind if kind == "float" else None) if bits is not None else None


def _width(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 64 else None
