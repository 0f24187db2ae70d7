"""What a connection gives per read, `(bytes, at_ns, clock)`, and the queue in which reads wait to be taken."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

KERNEL = "kernel"
"""The kernel stamped the bytes as they came in: how busy this process is does not move the stamp."""
USER = "user"
"""This process stamped the bytes, first thing when its event loop handed them over."""
MIXED = "mixed"
"""Some reads have a stamp of the kernel, others of this process."""


class Read(NamedTuple):
    """What one read brought; no bytes at the end of the stream."""

    data: bytes
    at_ns: int
    """On the host's monotonic clock, whoever took it."""
    clock: str
    """`kernel` or `user`; the end of the stream is always `user`, the kernel stamps bytes only."""


class Connection(Protocol):
    """An open connection to the server."""

    connect_ns: int
    """How long it took to set up, TLS included [ns]."""

    @property
    def quiet(self) -> bool:
        """Whether it is open and nothing unasked came in."""

    def send(self, request: bytes) -> int:
        """Hand the request to the kernel; gives the stamp right before [ns]."""

    async def read(self) -> Read:
        """The next read, in order; raises OSError when the connection broke."""

    def close(self) -> None:
        """Let go of it at once."""


def clock_of(clocks: Iterable[str]) -> str:
    """The word for the clocks of many reads; that of this process when there was no read."""
    used = set(clocks)
    return MIXED if len(used) > 1 else next(iter(used), USER)


class Arrivals:
    """Reads in the order they came, then the end of the stream or what broke it."""

    def __init__(self) -> None:
        self._reads: deque[Read] = deque()
        self._end_ns: int | None = None
        self._broken: OSError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def none(self) -> bool:
        """Whether nothing waits, not even the end."""
        return not self._reads and self._end_ns is None

    @property
    def ended(self) -> bool:
        """Whether nothing more can come behind what waits."""
        return self._end_ns is not None

    def put(self, read: Read) -> None:
        """One more read."""
        self._reads.append(read)
        self._wake()

    def end(self, at_ns: int, broken: OSError | None = None) -> None:
        """Nothing more comes; the first end stays."""
        if self._end_ns is None:
            self._end_ns, self._broken = at_ns, broken
        self._wake()

    async def take(self) -> Read:
        """The next read, without bytes once the stream ended; raises OSError when the connection broke."""
        while not self._reads:
            if self._broken is not None:
                raise self._broken
            if self._end_ns is not None:
                return Read(b"", self._end_ns, USER)
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._reads.popleft()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
