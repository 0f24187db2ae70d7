"""Streams that are under way, and the loop that sends each token when it is due."""

from __future__ import annotations

import heapq
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable
from os.path import abspath, dirname
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from deploytui.host.paced_truth import BLOCKED, FINISHED, KERNEL
    from deploytui.host.paced_wire import Wire
else:
    sys.path.insert(0, dirname(abspath(__file__)))
    from paced_truth import BLOCKED, FINISHED, KERNEL

GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, lie evenly however many there are."""


class Stream:
    """One answer: its chunks, and when each went out; `done` is called when it is over."""

    __slots__ = (
        *("chunks", "done", "due_ns", "first_due_ns", "flags", "id"),
        *("k", "n", "seen_ns", "send", "stamps", "tail", "wire"),
    )

    def __init__(self, id_: int, wire: Wire, chunks: list[bytes], tail: bytes, done: Callable[[], None]) -> None:
        self.id, self.wire, self.chunks, self.tail, self.done = id_, wire, chunks, tail, done
        self.seen_ns, self.flags = wire.seen.at_ns, KERNEL if wire.seen.by_kernel else 0
        self.k, self.n = 0, len(chunks)
        self.stamps = array("q", bytes(8 * self.n))
        self.send: Callable[[bytes], int] = wire.fast_send
        self.first_due_ns = self.due_ns = 0


class Pacer:
    """Sends tokens in the order in which they are due.

    Every stream has the same inter-token latency, so a stream that was just served is due after all that wait: a plain
    queue keeps them in order, and only first tokens need a heap.
    """

    def __init__(self, *, ttft_ns: int, itl_ns: int, phases: str, over: Callable[[Stream], None]) -> None:
        self._ttft_ns, self._itl_ns, self._phases, self._over = ttft_ns, itl_ns, phases, over
        self._begun = 0
        self._firsts: list[tuple[int, int, Stream]] = []
        self._queue: deque[Stream] = deque()

    def begin(self, stream: Stream) -> None:
        """Take a stream whose request was just seen."""
        stream.first_due_ns = stream.due_ns = self._first_due(stream.seen_ns)
        heapq.heappush(self._firsts, (stream.due_ns, self._begun, stream))
        self._begun += 1

    def next_due_ns(self) -> Optional[int]:
        """When the next token is due; None when nothing is under way."""
        firsts, queue = self._firsts, self._queue
        if firsts and queue:
            return min(firsts[0][0], queue[0].due_ns)
        return firsts[0][0] if firsts else queue[0].due_ns if queue else None

    def under_way(self) -> list[Stream]:
        """All streams that are not over."""
        return [*(entry[2] for entry in self._firsts), *self._queue]

    def send_due(self, most: int) -> None:
        """Send the tokens that are due, at most so many."""
        clock, queue, firsts, itl_ns = time.monotonic_ns, self._queue, self._firsts, self._itl_ns
        for _ in range(most):
            if firsts and not (queue and queue[0].due_ns < firsts[0][0]):
                if firsts[0][0] > clock():
                    return
                stream = heapq.heappop(firsts)[2]
            elif queue and queue[0].due_ns <= clock():
                stream = queue.popleft()
            else:
                return
            k = stream.k
            content = stream.chunks[k]
            at_ns = clock()
            try:
                sent = stream.send(content)
            except OSError as error:
                sent = 0
                if not isinstance(error, BlockingIOError):
                    self._over(stream)
                    continue
            stream.stamps[k] = at_ns
            stream.k = k = k + 1
            if sent != len(content):
                hold(stream, content[sent:])
            if k < stream.n:
                stream.due_ns += itl_ns
                queue.append(stream)
            else:
                self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        stream.flags |= FINISHED | (BLOCKED if stream.wire.blocked else 0)
        stream.wire.say(stream.tail)
        self._over(stream)

    def _first_due(self, seen_ns: int) -> int:
        due, itl_ns = seen_ns + self._ttft_ns, self._itl_ns
        if self._phases == "spread":
            return due + int(self._begun * GOLDEN % 1.0 * itl_ns)
        if self._phases == "grid" and itl_ns:
            return -(-due // itl_ns) * itl_ns
        return due


def hold(stream: Stream, rest: bytes) -> None:
    """What the kernel did not take waits in this process, and all that follows goes behind it."""
    stream.wire.hold(rest)
    stream.send = stream.wire.send
