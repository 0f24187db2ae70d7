"""The chunk stamps sidecar: when each request was sent and when each of its generated chunks came.

Layout, little-endian: the 8 bytes `DTSTAMP2`; then per request a header of 24 bytes, which is its id (u32), the number
of stamps (u32), who stamped its reads (u8: 0 user, 1 kernel, 2 mixed), 7 bytes of nothing and when it was sent (i64);
then the stamps (i64 each). All times are nanoseconds of the host's monotonic clock, the stamps ascend.
"""

import io
import struct
import sys
from array import array
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAGIC = b"DTSTAMP2"
MOST_STAMPS = 1 << 26
"""No answer has more chunks; a larger count is a broken header, and would ask for as much memory."""
MAX_ID = 2**32 - 1
CLOCKS = ("user", "kernel", "mixed")

_HEADER = struct.Struct("<IIB7xq")
_OTHER_LAYOUT = b"DTSTAMP"


class BadStamps(ValueError):
    """The bytes are no stamps sidecar."""


class RequestStamps(NamedTuple):
    """One request of a stamps sidecar."""

    id: int
    clock: str
    """`user`, `kernel` or `mixed`."""
    sent_ns: int
    stamps: "array[int]"
    """[ns], shape (generated chunks,)."""


def pack_stamps(request_id: int, clock: str, sent_ns: int, stamps: "array[int]") -> bytes:
    """The sidecar's bytes for one request."""
    header = _HEADER.pack(request_id, len(stamps), CLOCKS.index(clock), sent_ns)
    return header + _little_endian(stamps).tobytes()


def unpack_stamps(source: bytes | BinaryIO) -> Iterator[RequestStamps]:
    """Each request of a sidecar, in the order of their ends; reads on only as it is asked for more.

    An entry cut off at the end is left out. Raises BadStamps.
    """
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    _check_mark(file.read(len(MAGIC)))
    while len(header := file.read(_HEADER.size)) == _HEADER.size:
        request_id, count, clock, sent_ns = _HEADER.unpack(header)
        if count > MOST_STAMPS:
            raise BadStamps(f"request {request_id} of the chunk stamps claims {count} of them")
        content = file.read(8 * count)
        if len(content) < 8 * count:
            return
        if clock >= len(CLOCKS):
            raise BadStamps(f"request {request_id} of the chunk stamps has the unknown clock {clock}")
        yield RequestStamps(request_id, CLOCKS[clock], sent_ns, _little_endian(array("q", content)))


def _check_mark(mark: bytes) -> None:
    if mark == MAGIC:
        return
    if mark.startswith(_OTHER_LAYOUT):
        raise BadStamps(
            f"the chunk stamps have the layout {mark.decode(errors='replace')}, this version reads DTSTAMP2"
        )
    raise BadStamps("the chunk stamps do not begin with their mark")


def _little_endian(stamps: "array[int]") -> "array[int]":
    if sys.byteorder == "little":
        return stamps
    swapped = array("q", stamps)
    swapped.byteswap()
    return swapped
