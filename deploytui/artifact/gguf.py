"""The header of a GGUF file: what the model is, without its tensors. A fault is text, never an exception."""

from collections.abc import Iterator
from pathlib import Path
from struct import calcsize, unpack
from typing import BinaryIO

from msgspec import Struct

MAGIC = b"GGUF"
KNOWN_VERSIONS = (2, 3)
STRING, ARRAY = 8, 9
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
MOST_PAIRS = 1_000_000
LONGEST_TEXT = 16 << 20
DEEPEST_ARRAY = 4

_FILE_TYPES = """
F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ2_XXS IQ2_XS Q2_K_S
IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16 - - - TQ1_0 TQ2_0 MXFP4_MOE
"""
QUANTIZATIONS: dict[int, str] = {number: name for number, name in enumerate(_FILE_TYPES.split()) if name != "-"}
"""`general.file_type` → its name."""

Value = str | int | float | bool


class GgufHeader(Struct, frozen=True, kw_only=True):
    """What a GGUF file tells of itself; each field None where it does not, `fault` None when it could be read."""

    version: int | None = None
    architecture: str | None = None
    context_length: int | None = None
    quantization: str | None = None
    tensor_count: int | None = None
    fault: str | None = None


class _FaultError(Exception):
    """The bytes are no GGUF header."""


def read_gguf(path: str | Path) -> GgufHeader:
    """The header of the file at `path`; a file that can't be read or is malformed has a `fault`."""
    try:
        with Path(path).open("rb") as file:
            return header_of(file)
    except OSError as error:
        return GgufHeader(fault=str(error))


def header_of(file: BinaryIO) -> GgufHeader:
    """The header of an open file, read up to the point where everything asked for is known."""
    try:
        version, tensors, pairs = _fixed_part(file)
    except _FaultError as fault:
        return GgufHeader(fault=str(fault))
    told: dict[str, Value] = {}
    problem = None
    try:
        for key, value in _pairs(file, pairs):
            told[key] = value
            if _complete(told):
                break
    except _FaultError as fault:
        problem = str(fault)
    return _header(version, tensors, told, problem)


def _header(version: int, tensors: int, told: dict[str, Value], problem: str | None) -> GgufHeader:
    architecture = told.get("general.architecture")
    context = told.get(f"{architecture}.context_length")
    kind = told.get("general.file_type")
    return GgufHeader(
        version=version,
        architecture=architecture if isinstance(architecture, str) else None,
        context_length=context if isinstance(context, int) else None,
        quantization=QUANTIZATIONS.get(kind) if isinstance(kind, int) else None,
        tensor_count=tensors,
        fault=problem,
    )


def _complete(told: dict[str, Value]) -> bool:
    architecture = told.get("general.architecture")
    return architecture is not None and f"{architecture}.context_length" in told and "general.file_type" in told


def _fixed_part(file: BinaryIO) -> tuple[int, int, int]:
    """Version, number of tensors, number of key-value pairs."""
    magic = file.read(4)
    if magic != MAGIC:
        raise _FaultError("the file is empty" if not magic else f"the file starts with {magic!r}, not {MAGIC!r}")
    version = int(_scalar(file, "<I"))
    if version not in KNOWN_VERSIONS:
        raise _FaultError(f"GGUF version {version} is not known here")
    return version, int(_scalar(file, "<Q")), int(_scalar(file, "<Q"))


def _pairs(file: BinaryIO, count: int) -> Iterator[tuple[str, Value]]:
    """Keys with their plain values; arrays are passed over."""
    if count > MOST_PAIRS:
        raise _FaultError(f"the header claims {count} key-value pairs")
    for _ in range(count):
        key = _text(file)
        kind = int(_scalar(file, "<I"))
        if kind == ARRAY:
            _skip_array(file, 0)
        elif kind == STRING:
            yield key, _text(file)
        elif kind in SCALARS:
            yield key, _scalar(file, SCALARS[kind])
        else:
            raise _FaultError(f"{key} has the unknown type {kind}")


def _scalar(file: BinaryIO, form: str) -> int | float | bool:
    value: int | float | bool = unpack(form, _exactly(file, calcsize(form)))[0]
    return value


def _text(file: BinaryIO) -> str:
    length = int(_scalar(file, "<Q"))
    if length > LONGEST_TEXT:
        raise _FaultError(f"the header claims a text of {length} bytes")
    return _exactly(file, length).decode("utf-8", errors="replace")


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise _FaultError("the file ends inside its header")
    return data


def _skip_array(file: BinaryIO, depth: int) -> None:
    kind, count = int(_scalar(file, "<I")), int(_scalar(file, "<Q"))
    if kind in SCALARS:
        file.seek(calcsize(SCALARS[kind]) * min(count, 1 << 40), 1)
    elif kind == STRING:
        for _ in range(count):
            _text(file)
    elif kind == ARRAY and depth < DEEPEST_ARRAY:
        for _ in range(count):
            _skip_array(file, depth + 1)
    else:
        raise _FaultError(f"an array has the unknown type {kind}")
