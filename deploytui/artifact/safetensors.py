"""The header of a safetensors file: names, types and places of its tensors, never the tensors."""

import math
from pathlib import Path

import msgspec
from msgspec import Struct

from deploytui.artifact.reading import check_content, damaged, opened

LARGEST_HEADER = 100_000_000
"""What the format itself allows [bytes]."""

MOST_TENSORS = 200_000

BITS: dict[str, int] = {
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "I64": 64,
    "U64": 64,
    "F64": 64,
    "C64": 64,
}
"""Bits of an element."""

DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
"""Types of plain weights → their usual names."""


class TensorInfo(Struct, frozen=True):
    """One tensor; offsets [bytes] count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]

    @property
    def bytes(self) -> int:
        """What it takes in the file."""
        return self.data_offsets[1] - self.data_offsets[0]

    @property
    def elements(self) -> int:
        """Product of the shape."""
        return math.prod(self.shape)


class TensorFile(Struct, frozen=True, kw_only=True):
    """One file of tensors."""

    path: Path
    size: int
    tensors: dict[str, TensorInfo]
    metadata: dict[str, str] = {}


_header = msgspec.json.Decoder(dict[str, msgspec.Raw])
_tensor = msgspec.json.Decoder(TensorInfo)
_metadata = msgspec.json.Decoder(dict[str, str])


def read_safetensors(path: Path) -> TensorFile:
    """The header of a file, held against the file's size; FaultError when it is no whole safetensors file."""
    with opened(path) as (file, size):
        head = file.read(512)
        check_content(path, head, size)
        if size < 8:
            raise damaged(path, f"the file has {size} bytes, less than a header's length takes")
        length = int.from_bytes(head[:8], "little")
        if length > LARGEST_HEADER:
            raise damaged(path, f"the header claims {length} bytes; the format allows {LARGEST_HEADER}")
        if length > size - 8:
            raise damaged(path, f"the header claims {length} bytes, and the file has {size}")
        file.seek(8)
        content = file.read(length)
    tensors, metadata = _decoded(path, content)
    _check_extents(path, tensors, size - 8 - length)
    return TensorFile(path=path, size=size, tensors=tensors, metadata=metadata)


def _decoded(path: Path, content: bytes) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    try:
        rows = _header.decode(content)
        if len(rows) > MOST_TENSORS:
            raise damaged(path, f"the header names {len(rows)} tensors")
        raw = rows.pop("__metadata__", None)
        metadata = _metadata.decode(raw) if raw is not None else {}
        return {name: _tensor.decode(row) for name, row in rows.items()}, metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(path, f"the header can't be read: {error}") from error


def _check_extents(path: Path, tensors: dict[str, TensorInfo], room: int) -> None:
    """Tensors follow one another without gap or overlap, and end where the file ends."""
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        first, last = tensor.data_offsets
        if first != end or last < first:
            raise damaged(path, f"tensor '{name[:200]}' lies at {first} to {last}, and the one before it ends at {end}")
        _check_shape(path, name, tensor)
        end = last
    if room < end:
        raise damaged(path, f"its tensors need {end:,} bytes, and {room:,} are there")
    if room > end:
        raise damaged(path, f"its tensors end at {end} bytes, and {room} are there")


def _check_shape(path: Path, name: str, tensor: TensorInfo) -> None:
    if any(size < 0 for size in tensor.shape):
        raise damaged(path, f"tensor '{name[:200]}' has a negative size")
    bits = BITS.get(tensor.dtype)
    if bits is not None and tensor.elements * bits != tensor.bytes * 8:
        shape = "×".join(map(str, tensor.shape[:8]))
        raise damaged(path, f"tensor '{name[:200]}' of {shape} {tensor.dtype} does not take {tensor.bytes} bytes")
