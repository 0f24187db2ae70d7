"""What a candidate's model artifact is called, from what the profile says and from its file name."""

import re

from deploytui.profile.schema import Candidate

HOUSE_FORMATS = {"llamacpp": "gguf", "onnxruntime-genai": "onnx"}
"""Formats that only their engine takes as a matter of course; choosing the engine forces them."""

HUB_ENGINES = frozenset({"vllm", "sglang", "transformers", "tgi", "tensorrt-llm"})
"""Engines that take safetensors when nothing else is said."""

SUFFIXES = {
    ".gguf": "gguf",
    ".onnx": "onnx",
    ".safetensors": "safetensors",
    ".engine": "tensorrt",
    ".plan": "tensorrt",
    ".bin": "pytorch",
    ".pt": "pytorch",
    ".pth": "pytorch",
}

GGUF_QUANT = re.compile(
    r"(?:^|[-._])((?:I?Q[1-8]|TQ[12])_(?:K|NL|0|1|XXS|XS|S|M)(?:_(?:XXL|XL|L|M|S))?)(?=$|[-._])", re.I
)
HUB_QUANT = re.compile(
    r"(?:^|[-._])(awq|gptq|fp8|nvfp4|mxfp4|int8|int4|4bit|8bit|w4a16|w8a8|w8a16|bnb|bf16|fp16|f16|f32|fp32)(?=$|[-._])",
    re.I,
)
PLAIN_NAMES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "f32": "fp32",
    "float8": "fp8",
    "none": "",
    "auto": "",
}
"""Several words for one precision."""


def format_of(candidate: Candidate) -> str | None:
    """The artifact's format: as said, by file name, or the engine's usual one; None when nothing tells."""
    said = candidate.format or candidate.declared.get("format")
    if said:
        return said.lower()
    name = _file_name(candidate).lower()
    for suffix, format_ in SUFFIXES.items():
        if name.endswith(suffix):
            return format_
    if "gguf" in name or GGUF_QUANT.search(name):
        return "gguf"
    return HOUSE_FORMATS.get(candidate.engine) or ("safetensors" if candidate.engine in HUB_ENGINES else None)


def quantization_of(candidate: Candidate) -> str | None:
    """The quantisation: as said, as it is prepared, or by file name; None when nothing tells."""
    made = candidate.prepare.precision if candidate.prepare else None
    said = candidate.quantization or candidate.declared.get("quantization") or made
    if said:
        return said
    name = _file_name(candidate)
    match = GGUF_QUANT.search(name) or HUB_QUANT.search(name)
    return match[1] if match else None


def precision_of(candidate: Candidate) -> str | None:
    """One word for how the weights are stored, the same for all its spellings; None when nothing tells."""
    for word in (quantization_of(candidate), candidate.dtype or candidate.declared.get("dtype")):
        plain = PLAIN_NAMES.get(word.lower(), word.lower()) if word else ""
        if plain:
            return plain
    return None


def model_identity(candidate: Candidate) -> str | None:
    """The model's name without folder, owner, format and quantisation, so that its builds are known as one model."""
    name = re.sub(r"-\d{5}-of-\d{5}", "", _file_name(candidate).lower())
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    shorter = None
    while shorter != name:
        shorter, name = name, re.sub(r"[-._](gguf|onnx|int4|int8|dynamic|marlin|sym)$", "", name)
        for pattern in (GGUF_QUANT, HUB_QUANT):
            match = pattern.search(name)
            name = name[: match.start()] if match and match.start() and match.end() == len(name) else name
    return name or None


def _file_name(candidate: Candidate) -> str:
    """The last part of the model's path or hub id; empty when there is none."""
    return (candidate.model or "").rstrip("/").rsplit("/", 1)[-1].removeprefix("builtin:")
