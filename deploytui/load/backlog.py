"""What was read and not looked at yet.

Reading comes first: a token that waits in its socket meets the next one there, and the kernel keeps one stamp for both.
So a loop that is behind goes on reading, and looks at the rest when it has caught up.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

Received = tuple[bytes, list[tuple[int, int, bytes]], int, Any]
"""As `socket.recvmsg` gives it."""

AT_ONCE = 128
"""Reads that are looked at before the next poll, where more wait."""
MOST = 50_000
"""Reads that may wait, some 35 MB of short ones; what is more is looked at before the next poll, too."""
LARGE_BYTES = 4 << 10
"""Where reads are larger than that on average tokens have met long ago, and memory matters more."""


class Reader(Protocol):
    """Whose socket is read: first all that are ready, then each looks at what came.

    In one go, because with every read the kernel's code and ours drive each other out of the processor's caches.
    """

    recvmsg: Callable[[int, int], Received]
    """Reads once."""

    def look_at(self, received: Received, at_ns: int, since_ns: int | None) -> None:
        """What was read at that time; it came no earlier than `since_ns`, None where nobody knows."""

    def broke(self, error: OSError) -> None:
        """There is nothing more to read, for this reason."""


class Backlog:
    """Reads in the order they were made; each reader gets its own in that order."""

    def __init__(self) -> None:
        self.longest_ns = 0
        """The longest time between a read and the look at it, of those that had to wait [ns]."""
        self._waiting: deque[tuple[Reader, Received, int, int]] = deque()

    def __bool__(self) -> bool:
        """Whether any read waits."""
        return bool(self._waiting)

    def look_at(self, fresh: Sequence[tuple[Reader, Received, int]], since_ns: int, streams: int) -> None:
        """Have what waits looked at, then what is fresh: as much of both as may be before the next poll.

        That is all of it where more than half of the `streams` had something, or much: their tokens meet anyway.
        """
        if not self._waiting and len(fresh) <= AT_ONCE:
            for reader, received, at_ns in fresh:
                reader.look_at(received, at_ns, since_ns)
            return
        self._waiting += [(*read, since_ns) for read in fresh]
        large = sum(len(received[0]) for _, received, _ in fresh) > LARGE_BYTES * len(fresh)
        count = len(self._waiting)
        self._look_at_next(count if large or 2 * len(fresh) > streams else max(min(count, AT_ONCE), count - MOST))

    def catch_up(self) -> None:
        """Have all looked at."""
        self._look_at_next(len(self._waiting))

    def _look_at_next(self, count: int) -> None:
        if count:
            self.longest_ns = max(self.longest_ns, time.monotonic_ns() - self._waiting[0][2])
        for _ in range(count):
            reader, received, at_ns, since_ns = self._waiting.popleft()
            reader.look_at(received, at_ns, since_ns)

    def forget(self) -> None:
        """Nobody will look at anything any more."""
        self._waiting.clear()
