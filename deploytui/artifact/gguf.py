"""The header of a GGUF file: its metadata and its list of tensors, never the tensors. A fault is text, not raised."""

import hashlib
from pathlib import Path
from struct import Struct as Form
from struct import unpack_from
from typing import BinaryIO

from msgspec import Struct

from deploytui.artifact.reading import FaultError, opened

MAGIC = b"GGUF"
KNOWN_VERSIONS = (2, 3)
STRING, ARRAY = 8, 9
_FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
SCALARS = {kind: Form(form) for kind, form in _FORMS.items()}
U32, U64 = Form("<I"), Form("<Q")

LARGEST_HEADER = 128 << 20
"""Headers with 256,000 tokens and their merges take some 20 MB [bytes]."""
MOST_TEXTS = 4_000_000
"""In arrays, of all metadata; five times what the largest vocabularies have with their merges."""
MOST_NESTED = 1000
"""Arrays in arrays, of all metadata; no known model has any."""
MOST_PAIRS = 10_000
MOST_TENSORS = 200_000
LONGEST_TEXT = 16 << 20
LONGEST_KEPT_ARRAY = 512
DEEPEST_ARRAY = 4
MOST_DIMENSIONS = 8
BLOCK = 1 << 20

Value = str | int | float | bool


class Listed(Struct, frozen=True):
    """An array of the metadata; its values only where they are few and plain numbers."""

    count: int
    values: tuple[int | float | bool, ...] | None = None


class Tensor(Struct, frozen=True):
    """One tensor; `offset` [bytes] counts from the start of the data."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class GgufHeader(Struct, frozen=True, kw_only=True):
    """What a GGUF file tells of itself, as far as it could be read; `fault` None when that is all of it."""

    version: int | None = None
    pairs: dict[str, Value | Listed] = {}
    tensor_count: int | None = None
    tensors: tuple[Tensor, ...] = ()
    data_start: int | None = None
    """Where the tensors begin [bytes]; None when the header could not be read to its end."""
    size: int | None = None
    """Of the whole file [bytes]."""
    tokenizer_sha256: str | None = None
    """Of the metadata that make the tokenizer; None when there are none."""
    fault: str | None = None
    unknown_version: bool = False

    def text(self, key: str) -> str | None:
        """The text under a key; None when there is none."""
        value = self.pairs.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        """The whole number under a key; None when there is none."""
        value = self.pairs.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def listed(self, key: str) -> Listed | None:
        """The array under a key; None when there is none."""
        value = self.pairs.get(key)
        return value if isinstance(value, Listed) else None


class _FaultError(Exception):
    """The bytes are no GGUF header."""


class _Unfinished:
    """A header as it is being read."""

    def __init__(self) -> None:
        self.version: int | None = None
        self.pairs: dict[str, Value | Listed] = {}
        self.tensor_count: int | None = None
        self.tensors: list[Tensor] = []
        self.data_start: int | None = None
        self.tokenizer = hashlib.sha256()
        self.has_tokenizer = False


def read_gguf(path: str | Path) -> GgufHeader:
    """The header of the file at `path`; a file that can't be read or is malformed has a `fault`."""
    try:
        with opened(Path(path)) as (file, size):
            return header_of(file, size)
    except FaultError as error:
        return GgufHeader(fault=error.failure.why or error.failure.what)


def header_of(file: BinaryIO, size: int | None = None) -> GgufHeader:
    """The header of an open file of `size` bytes."""
    found, problem = _Unfinished(), None
    try:
        _read(_Cursor(file), found)
    except _FaultError as error:
        problem = str(error)
    return GgufHeader(
        version=found.version,
        pairs=found.pairs,
        tensor_count=found.tensor_count,
        tensors=tuple(found.tensors),
        data_start=found.data_start,
        size=size,
        tokenizer_sha256=found.tokenizer.hexdigest() if found.has_tokenizer else None,
        fault=problem,
        unknown_version=found.version is not None and found.version not in KNOWN_VERSIONS,
    )


def _read(cursor: "_Cursor", found: _Unfinished) -> None:
    _read_magic(cursor)
    found.version = cursor.number(U32)
    if found.version not in KNOWN_VERSIONS:
        swapped = found.version & 0xFFFF == 0
        raise _FaultError("it is big-endian" if swapped else f"GGUF version {found.version} is not known here")
    found.tensor_count = cursor.number(U64)
    pairs = cursor.number(U64)
    if pairs > MOST_PAIRS or found.tensor_count > MOST_TENSORS:
        raise _FaultError(f"the header claims {pairs} key-value pairs and {found.tensor_count} tensors")
    for _ in range(pairs):
        _read_pair(cursor, found)
    for _ in range(found.tensor_count):
        found.tensors.append(_tensor(cursor))
    found.data_start = _aligned(cursor.at, alignment(found.pairs))


def _read_magic(cursor: "_Cursor") -> None:
    magic = cursor.some(4)
    if magic != MAGIC:
        raise _FaultError("the file is empty" if not magic else f"it begins {magic.hex(' ')}, not with GGUF")


def alignment(pairs: dict[str, Value | Listed]) -> int:
    """What tensors are aligned to [bytes]; 32 where the file does not say."""
    told = pairs.get("general.alignment")
    return told if isinstance(told, int) and 0 < told <= 1 << 20 else 32


def _aligned(offset: int, step: int) -> int:
    return -(-offset // step) * step


def _read_pair(cursor: "_Cursor", found: _Unfinished) -> None:
    start = cursor.at
    key = cursor.text()
    kind = cursor.number(U32)
    if kind == ARRAY:
        found.pairs[key] = _array(cursor, 0)
    elif kind == STRING:
        found.pairs[key] = cursor.text()
    elif kind in SCALARS:
        found.pairs[key] = cursor.scalar(SCALARS[kind])
    else:
        raise _FaultError(f"{key[:100]} has the unknown type {kind}")
    if key.startswith("tokenizer.") and not key.startswith("tokenizer.chat_template"):
        found.has_tokenizer = True
        with memoryview(cursor.data) as view:
            found.tokenizer.update(view[start : cursor.at])


def _array(cursor: "_Cursor", depth: int) -> Listed:
    kind, count = cursor.number(U32), cursor.number(U64)
    if kind in SCALARS:
        return Listed(count, cursor.scalars(SCALARS[kind], count))
    if kind == STRING:
        cursor.pass_texts(count)
    elif kind == ARRAY and depth < DEEPEST_ARRAY and count <= cursor.nested_left:
        cursor.nested_left -= count
        for _ in range(count):
            _array(cursor, depth + 1)
    else:
        raise _FaultError(f"an array of {count} has the unknown type {kind}")
    return Listed(count)


def _tensor(cursor: "_Cursor") -> Tensor:
    name = cursor.text()
    dimensions = cursor.number(U32)
    if dimensions > MOST_DIMENSIONS:
        raise _FaultError(f"tensor {name[:100]} claims {dimensions} dimensions")
    shape = tuple(cursor.number(U64) for _ in range(dimensions))
    return Tensor(name, shape, cursor.number(U32), cursor.number(U64))


class _Cursor:
    """A place in a header that is read from the file as it is needed; holds no more than the largest header."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.data, self.at = file, bytearray(), 0
        self.texts_left, self.nested_left = MOST_TEXTS, MOST_NESTED

    def need(self, count: int) -> None:
        """The next `count` bytes are in `data` from now on."""
        missing = self.at + count - len(self.data)
        if missing <= 0:
            return
        if self.at + count > LARGEST_HEADER:
            raise _FaultError(f"the header claims more than {LARGEST_HEADER >> 20} MiB")
        part = self.file.read(max(missing, BLOCK))
        self.data += part
        if len(part) < missing:
            raise _FaultError("the file ends inside its header")

    def some(self, count: int) -> bytes:
        """Up to `count` bytes; fewer at the end of the file."""
        self.data += self.file.read(max(0, count - len(self.data)))
        self.at = min(count, len(self.data))
        return bytes(self.data[: self.at])

    def number(self, form: Form) -> int:
        """A whole number."""
        return int(self.scalar(form))

    def scalar(self, form: Form) -> int | float | bool:
        """A plain value."""
        self.need(form.size)
        value: int | float | bool = form.unpack_from(self.data, self.at)[0]
        self.at += form.size
        return value

    def scalars(self, form: Form, count: int) -> tuple[int | float | bool, ...] | None:
        """An array of plain values; None when it is too long to be kept."""
        if count > LARGEST_HEADER:
            raise _FaultError(f"an array claims {count} values")
        self.need(count * form.size)
        start, self.at = self.at, self.at + count * form.size
        if count > LONGEST_KEPT_ARRAY:
            return None
        return unpack_from(f"<{count}{form.format[1:]}", self.data, start)

    def text(self) -> str:
        """A text; what is no UTF-8 in it is replaced."""
        length = self.number(U64)
        _check_text(length)
        self.need(length)
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8", errors="replace")

    def pass_texts(self, count: int) -> None:
        """Go behind `count` texts."""
        if count > self.texts_left:
            raise _FaultError(f"the header claims {count} texts in an array")
        self.texts_left -= count
        unpack, data, at, have = U64.unpack_from, self.data, self.at, len(self.data)
        for _ in range(count):
            if at + 8 > have:
                self.at = at
                self.need(8)
                have = len(data)
            (length,) = unpack(data, at)
            end = at + 8 + length
            if end > have:
                _check_text(length)
                self.at = at + 8
                self.need(length)
                have = len(data)
            at = end
        self.at = at


def _check_text(length: int) -> None:
    if length > LONGEST_TEXT:
        raise _FaultError(f"the header claims a text of {length} bytes")
