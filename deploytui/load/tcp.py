"""A plain TCP connection read with the kernel's stamps.

One read has one stamp: the kernel keeps that of the last segment it hands over, and forgets the others already when it
merges segments in its queue, so smaller reads would tell nothing more.
"""

import asyncio
import contextlib
import functools
import socket
import time
from collections.abc import Callable
from typing import Any

from deploytui.load.backlog import Received
from deploytui.load.kernel_clock import Ancillary, KernelClock, ask_for_stamps
from deploytui.load.loop import hurry, read_once, settling, unwatch, watch
from deploytui.load.meter import LATE_NS, Meter
from deploytui.load.wire import Sink

Stamper = Callable[[Ancillary, int], int | None]

_now_ns = time.monotonic_ns


async def dialled(address: str, port: int) -> socket.socket:
    """A connected socket to a numeric address; raises OSError."""
    family, kind, protocol, _, place = _place(address, port)
    with contextlib.ExitStack() as undone:
        sock = undone.enter_context(socket.socket(family, kind, protocol))
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask_for_stamps(sock)
        await asyncio.get_running_loop().sock_connect(sock, place)
        undone.pop_all()
    return sock


@functools.cache
def _place(address: str, port: int) -> tuple[int, int, int, str, Any]:
    return socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0]


async def dial(address: str, port: int, clock: KernelClock, meter: Meter) -> "TcpWire":
    """A fresh connection to a numeric address; raises OSError."""
    return TcpWire(await dialled(address, port), clock, meter)


class TcpWire:
    """A connection that reads its own non-blocking socket as soon as the event loop says that something came."""

    __slots__ = (
        "__weakref__",
        "_answer",
        "_clock",
        "_count",
        "_ended",
        "_latest_ns",
        "_loop",
        "_meter",
        "_news",
        "_sock",
        "_stamp",
        "_unasked",
        "_unsent",
        "connect_ns",
        "recvmsg",
    )

    def __init__(self, sock: socket.socket, clock: KernelClock, meter: Meter) -> None:
        self.connect_ns = 0
        self._sock = sock
        self.recvmsg = self._reading()
        self._clock = clock
        self._meter, self._count = meter, meter.count
        self._stamp: Stamper | None = self._first_stamp if ask_for_stamps(sock) else None
        """None where this process has to stamp what comes in."""
        self._latest_ns = 0
        self._unsent = memoryview(b"")
        self._answer: Sink | None = None
        self._unasked = False
        """Bytes came in that belong to no answer."""
        self._ended = False
        self._news: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        settling(self._loop, clock.settle)
        watch(sock, self)

    @property
    def quiet(self) -> bool:
        """Whether it is open, all was sent and nothing unasked came in."""
        return not (self._ended or self._unasked or self._unsent)

    def ask(self, answer: Sink, request: bytes) -> None:
        """Hand the request to the kernel, what it does not take at once later; the stamp is taken right before."""
        self._answer = answer
        self._unsent = memoryview(self._sealed(request))
        answer.sent_ns = self._latest_ns = _now_ns()
        self._hand_over()
        if self._unsent:  # a poll knows a socket once: until all is sent it is asyncio's own
            unwatch(self._loop, self._sock)
            self._loop.add_reader(self._sock, read_once, self)
            self._loop.add_writer(self._sock, self._send_on)

    async def news(self) -> None:
        """Wait until the answer is over, or `[DONE]` came."""
        if self._answer is not None:
            self._news = self._loop.create_future()
            try:
                await self._news
            finally:
                self._news = None

    def wake(self) -> None:
        """Have `news` return."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def close(self) -> None:
        """Let go of it at once."""
        self._answer = None
        self._stop()
        self._sock.close()

    def _reading(self) -> Callable[[int, int], Received]:
        """What reads once."""
        return self._sock.recvmsg

    def _sealed(self, request: bytes) -> bytes:
        """The bytes to send for a request."""
        return request

    def look_at(self, received: Received, at_ns: int, since_ns: int | None) -> None:
        """Stamp what a read brought and fold it into the answer that it belongs to."""
        data, ancillary, _, _ = received
        if not data:
            self._end()
            return
        if since_ns is None:
            self._clock.settle()
        answer, stamp, now_ns = self._answer, self._stamp, at_ns
        if answer is None:
            self._unasked = True
            return
        stamp_ns = None if stamp is None else stamp(ancillary, now_ns)
        if stamp_ns is not None:
            at_ns = stamp_ns
        if at_ns < self._latest_ns:  # a stamp of ours, or a finer distance of the clocks, may precede the kernel's
            at_ns = self._latest_ns
        else:
            self._latest_ns = at_ns
        chunks = answer.read(data, at_ns, stamp_ns is not None)
        if stamp_ns is not None:
            self._count(now_ns - at_ns)
        elif since_ns is not None:
            self._count(now_ns - since_ns)
        if chunks > 1:
            self._merged(answer, now_ns - (since_ns or at_ns))
        if answer.done_ns is not None or answer.over:
            self._told(answer)

    def broke(self, error: OSError) -> None:
        """There is nothing more to read, for this reason."""
        self._end(error)

    def _merged(self, answer: Sink, waited_ns: int) -> None:
        """Several chunks came in one read that waited so long at most."""
        late = waited_ns > LATE_NS
        answer.late_merged += late
        self._meter.add_merged(late=late)

    def _told(self, answer: Sink) -> None:
        if answer.over:
            self._answer = None
        self.wake()

    def _first_stamp(self, ancillary: Ancillary, now_ns: int) -> int | None:
        """Some kernels and sandboxes take the option and never stamp: the first read tells."""
        at_ns = self._clock.carried(ancillary, now_ns)
        self._stamp = self._clock.carry if at_ns is not None else None
        if at_ns is None:
            hurry(self._loop)
        return at_ns

    def _hand_over(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._unsent = memoryview(b"")
            while not self._ended and read_once(self):  # what the server said before it hung up
                pass
            self._end(error)

    def _send_on(self) -> None:
        self._hand_over()
        if not self._unsent and not self._ended:
            self._forget()
            watch(self._sock, self)

    def _end(self, broken: OSError | None = None) -> None:
        """Nothing more comes; the first end stays."""
        if self._ended:
            return
        self._ended = True
        self._stop()
        answer, self._answer = self._answer, None
        if answer is not None and broken is not None:
            answer.fail("reset", f"the connection broke: {broken}", _now_ns())
        elif answer is not None:
            answer.eof(_now_ns())
        self.wake()

    def _stop(self) -> None:
        if self._sock.fileno() >= 0:
            self._forget()
            unwatch(self._loop, self._sock)

    def _forget(self) -> None:
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
