"""A walk over protobuf bytes in a file that reads only what is asked for: large fields are passed over, not read."""

from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct

BLOCK = 1 << 16
MOST_FIELDS = 1_000_000
"""More than any model of ours has; a file that has more would take too long."""
LONGEST_READ = 1 << 20
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class ProtobufError(Exception):
    """The bytes are no protobuf message, or one that is too large."""


class Field(Struct, frozen=True):
    """One field: its number, and its value, or where its bytes lie."""

    number: int
    value: int = 0
    """Of a varint; for bytes their length."""
    start: int = -1
    """Where its bytes begin in the file; -1 for numbers."""

    @property
    def end(self) -> int:
        """Where its bytes end."""
        return self.start + self.value


class Walk:
    """Fields of messages in a file of `size` bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size, self.left = file, size, MOST_FIELDS
        self._block, self._from = b"", 0

    def fields(self, start: int, end: int) -> Iterator[Field]:
        """The fields of the message between two offsets."""
        at = start
        while at < end:
            self.left -= 1
            if self.left < 0:
                raise ProtobufError(f"it has more than {MOST_FIELDS} fields")
            key, at = self._varint(at, end)
            number, wire = key >> 3, key & 7
            if number == 0:
                raise ProtobufError("a field has the number 0")
            if wire == VARINT:
                value, at = self._varint(at, end)
                yield Field(number, value)
                continue
            length, at = self._length(wire, at, end)
            if length > end - at:
                raise ProtobufError(f"the file is cut off: a field of {length} bytes begins at {at}")
            if wire == BYTES:
                yield Field(number, length, at)
            at += length

    def _length(self, wire: int, at: int, end: int) -> tuple[int, int]:
        if wire == BYTES:
            return self._varint(at, end)
        if wire == FIXED64:
            return 8, at
        if wire == FIXED32:
            return 4, at
        raise ProtobufError(f"a field has the unknown wire type {wire}")

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            if at >= end or shift > 63:
                raise ProtobufError(f"a number is cut off at {at}")
            byte = self._byte(at)
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7

    def _byte(self, at: int) -> int:
        place = at - self._from
        if not 0 <= place < len(self._block):
            self.file.seek(at)
            self._block, self._from, place = self.file.read(BLOCK), at, 0
            if not self._block:
                raise ProtobufError(f"the file ends at {at}")
        return self._block[place]

    def content(self, field: Field) -> bytes:
        """The bytes of a field."""
        if field.value > LONGEST_READ:
            raise ProtobufError(f"a text of {field.value} bytes begins at {field.start}")
        place = field.start - self._from
        if place >= 0 and place + field.value <= len(self._block):
            return self._block[place : place + field.value]
        self.file.seek(field.start)
        return self.file.read(field.value)

    def text(self, field: Field) -> str:
        """The text of a field; what is no UTF-8 in it is replaced."""
        return self.content(field).decode("utf-8", errors="replace")

    def numbers(self, field: Field) -> tuple[int, ...]:
        """The varints of a field: one, or packed ones."""
        if field.start < 0:
            return (field.value,)
        found, at = [], field.start
        while at < field.end:
            value, at = self._varint(at, field.end)
            found.append(value)
            if len(found) > 64:
                raise ProtobufError("a tensor has more than 64 dimensions")
        return tuple(found)
