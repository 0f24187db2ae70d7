"""The chunk stamps sidecar: when each generated chunk of each request came.

Layout, little-endian: the 8 bytes `DTSTAMP1`; then per request its id (u32), the number of stamps (u32) and the stamps
(i64 each, nanoseconds of the host's monotonic clock, ascending).
"""

import struct
import sys
from array import array
from collections.abc import Iterator

MAGIC = b"DTSTAMP1"
MAX_ID = 2**32 - 1

_HEADER = struct.Struct("<II")


class BadStamps(ValueError):
    """The bytes are no stamps sidecar."""


def pack_stamps(request_id: int, stamps: "array[int]") -> bytes:
    """The sidecar's bytes for one request."""
    return _HEADER.pack(request_id, len(stamps)) + _little_endian(stamps).tobytes()


def unpack_stamps(content: bytes) -> "Iterator[tuple[int, array[int]]]":
    """Id and stamps [ns] of each request of a sidecar; an entry cut off at its end is left out. Raises BadStamps."""
    if not content.startswith(MAGIC):
        raise BadStamps("the chunk stamps do not begin with their mark")
    at = len(MAGIC)
    while at + _HEADER.size <= len(content):
        request_id, count = _HEADER.unpack_from(content, at)
        begin, at = at + _HEADER.size, at + _HEADER.size + 8 * count
        if at > len(content):
            return
        yield request_id, _little_endian(array("q", content[begin:at]))


def _little_endian(stamps: "array[int]") -> "array[int]":
    if sys.byteorder == "little":
        return stamps
    swapped = array("q", stamps)
    swapped.byteswap()
    return swapped
