"""Tiny artifacts of every kind, made byte by byte."""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploytui.artifact.gguf_types import TENSOR_TYPES

Shape = tuple[int, ...]


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key: str, kind: int, data: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + data


def words(key: str, value: str) -> bytes:
    return pair(key, 8, text(value))


def number(key: str, value: int) -> bytes:
    return pair(key, 4, struct.pack("<I", value))


def numbers(key: str, values: Sequence[int]) -> bytes:
    return pair(key, 9, struct.pack("<IQ", 4, len(values)) + struct.pack(f"<{len(values)}I", *values))


NAMES = pair("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b"))
SCORES = pair("scores", 9, struct.pack("<IQ", 6, 3) + bytes(12))
NESTED = pair("nested", 9, struct.pack("<IQ", 9, 1) + struct.pack("<IQ", 4, 1) + bytes(4))
PAIRS = (
    words("general.architecture", "llama"),
    NAMES,
    SCORES,
    NESTED,
    number("llama.context_length", 8192),
    number("general.file_type", 15),
)
TENSORS: tuple[tuple[str, Shape, int], ...] = (("token_embd.weight", (32, 4), 8), ("output_norm.weight", (32,), 0))


def gguf(
    *pairs: bytes,
    version: int = 3,
    tensors: Sequence[tuple[str, Shape, int]] = TENSORS,
    count: int | None = None,
    body: bool = True,
) -> bytes:
    """A whole file; `count` claims another number of pairs, without `body` it ends with the metadata."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs) if count is None else count)
    head += b"".join(pairs)
    if not body:
        return head
    offset, data = 0, b""
    for name, shape, kind in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        _, elements, size = TENSOR_TYPES.get(kind, ("", 1, 1))
        data = data.ljust(offset, b"\0") + bytes(math.prod(shape) // elements * size)
        offset = -(-len(data) // 32) * 32
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + data


def tensors_file(tensors: Mapping[str, tuple[str, Shape, int]], metadata: Mapping[str, str] | None = None) -> bytes:
    """A safetensors file; each tensor has a type, a shape and its bytes."""
    rows: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    offset = 0
    for name, (kind, shape, size) in tensors.items():
        rows[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    return raw_tensors(rows, offset)


def raw_tensors(rows: Mapping[str, Any], size: int) -> bytes:
    head = json.dumps(rows).encode()
    return struct.pack("<Q", len(head)) + head + bytes(size)


LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 6,
    "max_position_embeddings": 128,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
}
TOKENIZER: dict[str, Any] = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}},
    "added_tokens": [{"id": 2, "content": "<s>"}, {"id": 0, "content": "a"}],
}
WEIGHTS: dict[str, tuple[str, Shape, int]] = {
    "model.embed_tokens.weight": ("BF16", (6, 8), 96),
    "model.norm.weight": ("BF16", (8,), 16),
}


def save(folder: Path, files: Mapping[str, bytes | str | Mapping[str, Any]]) -> Path:
    """A folder with these files; objects are written as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
        (folder / name).write_bytes(data if data is not None else json.dumps(content).encode())
    return folder


def checkpoint(folder: Path, config: Mapping[str, Any] | None = None, **more: Any) -> Path:
    """A whole safetensors checkpoint; `more` is added to its config.json."""
    return save(
        folder,
        {
            "config.json": {**LLAMA, **(config or {}), **more},
            "model.safetensors": tensors_file(WEIGHTS, {"format": "pt"}),
            "tokenizer.json": TOKENIZER,
            "chat_template.jinja": "{{ messages }}",
        },
    )


def sharded(folder: Path) -> Path:
    """A checkpoint in two files with an index."""
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    embed, norm = WEIGHTS
    return save(
        folder,
        {
            "config.json": LLAMA,
            first: tensors_file({embed: WEIGHTS[embed]}),
            second: tensors_file({norm: WEIGHTS[norm]}),
            "model.safetensors.index.json": {"metadata": {}, "weight_map": {embed: first, norm: second}},
        },
    )


def field(number_: int, content: bytes | int) -> bytes:
    """One protobuf field."""
    if isinstance(content, int):
        return varint(number_ << 3) + varint(content)
    return varint(number_ << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def onnx_tensor(name: str, kind: int, shape: Shape, external: Mapping[str, str] | None = None) -> bytes:
    out = b"".join(field(1, size) for size in shape) + field(2, kind) + field(8, name.encode())
    if external is None:
        return out + field(9, bytes(math.prod(shape) * 4))
    return out + b"".join(field(13, field(1, k.encode()) + field(2, v.encode())) for k, v in external.items())


def onnx_node(op: str, inputs: Sequence[str] = (), domain: str = "", **attributes: int) -> bytes:
    out = b"".join(field(1, name.encode()) for name in inputs) + field(4, op.encode()) + field(7, domain.encode())
    return out + b"".join(field(5, field(1, name.encode()) + field(3, value)) for name, value in attributes.items())


def onnx_model(nodes: Sequence[bytes], tensors: Sequence[bytes] = (), opset: Mapping[str, int] | None = None) -> bytes:
    graph = b"".join(field(1, node) for node in nodes) + b"".join(field(5, tensor) for tensor in tensors)
    sets = opset or {"": 22, "com.microsoft": 1}
    out = field(1, 10) + field(7, graph)
    return out + b"".join(field(8, field(1, name.encode()) + field(2, version)) for name, version in sets.items())


GENAI: dict[str, Any] = {
    "model": {
        "type": "llama",
        "context_length": 64,
        "vocab_size": 6,
        "decoder": {
            "filename": "model.onnx",
            "head_size": 2,
            "hidden_size": 8,
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
            "num_key_value_heads": 2,
            "session_options": {"provider_options": [{"cuda": {}}]},
        },
    }
}

TENSORRT: dict[str, Any] = {
    "version": "1.2.1",
    "pretrained_config": {
        "architecture": "LlamaForCausalLM",
        "dtype": "float16",
        "hidden_size": 8,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "vocab_size": 6,
        "mapping": {"world_size": 2, "tp_size": 2, "pp_size": 1},
        "quantization": {"quant_algo": "FP8"},
    },
    "build_config": {
        "max_batch_size": 8,
        "max_seq_len": 256,
        "auto_parallel_config": {"cluster_key": "H100-SXM"},
    },
}


def engine_folder(folder: Path) -> Path:
    """A TensorRT-LLM engine for two GPUs."""
    return save(folder, {"config.json": TENSORRT, "rank0.engine": b"plan", "rank1.engine": b"plan"})
