"""What the paced server really did: when it saw each request and when it handed each token to the kernel.

The truth file, little-endian: the 8 bytes `DTTRUTH1` and the schedule's inter-token latency [ns] as i64; then per
request a header of its id (u32; 2**32 - 1 without one), the number of stamps (u32), a byte of flags, 7 bytes that mean
nothing, when the request was seen and when its first token was due (i64 each), and the stamps (i64 each). Times are
nanoseconds of the host's monotonic clock. Flags: 1 the answer was sent to its end; 2 the client read so slowly that a
token had to wait in this process, so that its stamp tells nothing; 4 the kernel stamped the request as it came in.
"""

from __future__ import annotations

import io
import struct
import sys
from array import array
from typing import TYPE_CHECKING, Any, BinaryIO, Optional

if TYPE_CHECKING:
    from deploytui.host.paced_streams import Stream

MAGIC = b"DTTRUTH1"
ENTRY = struct.Struct("<IIB7xqq")
FINISHED, BLOCKED, KERNEL = 1, 2, 4
HELD_STAMPS = 4_000_000
"""So many stamps wait in memory before they are written, since writing takes the time that sending needs."""
BUCKET_NS = 10_000
BUCKETS = 100_000
"""Lateness is counted in steps of 10 us up to 1 s."""


class Truth:
    """Takes streams that are over; writes them when told to, or when they have become many."""

    def __init__(self, path: Optional[str], itl_ns: int) -> None:
        self._file: Optional[BinaryIO] = io.BufferedWriter(io.FileIO(path, "w")) if path else None
        self._itl_ns = itl_ns
        self._waiting: list[Stream] = []
        self._held = 0
        self._late = array("Q", bytes(8 * BUCKETS))
        self.requests = self.cut = self.blocked = self.tokens = self.worst_ns = 0
        if self._file is not None:
            self._file.write(MAGIC + struct.pack("<q", itl_ns))

    def put(self, stream: Stream) -> None:
        """Take a stream that is over."""
        self._waiting.append(stream)
        self._held += stream.n
        if self._held > HELD_STAMPS:
            self.write()

    def write(self) -> None:
        """Bring everything that is over to the file."""
        for stream in self._waiting:
            self._count(stream)
            if self._file is not None:
                self._file.write(entry(stream))
        self._waiting, self._held = [], 0
        if self._file is not None:
            self._file.flush()

    def told(self) -> dict[str, Any]:
        """Counts, and how late tokens were against the schedule [us]; None without any."""
        late = {"p50": self._late_us(0.5), "p99": self._late_us(0.99), "max": self.worst_ns // 1000}
        return {
            "requests": self.requests,
            "cut": self.cut,
            "blocked": self.blocked,
            "tokens": self.tokens,
            "late_us": late if self.tokens else None,
        }

    def close(self) -> None:
        """Write what is left."""
        self.write()
        if self._file is not None:
            self._file.close()

    def _count(self, stream: Stream) -> None:
        self.requests += 1
        self.cut += not stream.flags & FINISHED
        self.blocked += bool(stream.flags & BLOCKED)
        self.tokens += stream.k
        due, counts, last = stream.first_due_ns, self._late, BUCKETS - 1
        for stamp in stream.stamps[: stream.k]:
            late = stamp - due
            due += self._itl_ns
            self.worst_ns = max(self.worst_ns, late)
            counts[min(late // BUCKET_NS, last)] += 1

    def _late_us(self, share: float) -> int:
        """The upper edge of the bucket that holds this share [us]."""
        left = share * self.tokens
        for number, count in enumerate(self._late):
            left -= count
            if left <= 0:
                return (number + 1) * BUCKET_NS // 1000
        return BUCKETS * BUCKET_NS // 1000


def entry(stream: Stream) -> bytes:
    """A stream's part of the file."""
    stamps = stream.stamps[: stream.k]
    if sys.byteorder != "little":
        stamps.byteswap()
    head = ENTRY.pack(stream.id, stream.k, stream.flags, stream.seen_ns, stream.first_due_ns)
    return head + stamps.tobytes()
