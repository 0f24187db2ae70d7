"""Two ends of a TCP connection on loopback, and whether the kernel stamps what comes in there."""

import asyncio
import contextlib
import functools
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import NamedTuple

from deploytui.load.kernel_clock import KernelClock, stamping
from deploytui.load.meter import Meter
from deploytui.load.tcp import TcpWire

OPTION = 35
"""Linux's SO_TIMESTAMPNS."""


@contextlib.contextmanager
def tcp_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The client's and the server's end, for the time of a block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    with near, far:
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far.settimeout(10)
        yield near, far


class Read(NamedTuple):
    """What one read brought."""

    data: bytes
    at_ns: int
    clock: str


class Tape:
    """Takes in whatever comes, as an answer would."""

    def __init__(self) -> None:
        self.sent_ns = 0
        self.over = False
        self.done_ns: int | None = None
        self.late_merged = 0
        self.reads: list[Read] = []
        self.broken: str | None = None
        """Why the connection broke; None when it did not."""
        self._came = asyncio.Event()

    @property
    def data(self) -> bytes:
        return b"".join(read.data for read in self.reads)

    def read(self, data: bytes, at_ns: int, kernel: bool = False, /) -> int:
        self.reads.append(Read(data, at_ns, "kernel" if kernel else "user"))
        self._came.set()
        return 1

    def eof(self, at_ns: int) -> None:
        self.over = True
        self._came.set()

    def fail(self, kind: str, text: str, at_ns: int) -> None:
        self.broken = text
        self.eof(at_ns)

    async def until(self, count: int) -> list[Read]:
        """The reads, once so many bytes came."""
        while len(self.data) < count and not self.over:
            self._came.clear()
            await self._came.wait()
        assert len(self.data) >= count, "the stream ended early"
        return self.reads

    async def end(self) -> None:
        """Wait until nothing more can come."""
        while not self.over:
            self._came.clear()
            await self._came.wait()


@contextlib.contextmanager
def wired(clock: KernelClock | None = None) -> Iterator[tuple[TcpWire, socket.socket]]:
    """A wire and the server's end; needs a running event loop."""
    with tcp_pair() as (near, far):
        near.setblocking(False)
        wire = TcpWire(near, clock or KernelClock(), Meter())
        try:
            yield wire, far
        finally:
            wire.close()


def taped(wire: TcpWire, request: bytes = b"") -> Tape:
    """What comes in from now on."""
    tape = Tape()
    wire.ask(tape, request)
    return tape


@functools.cache
def clock_here() -> str:
    """`kernel` where this machine's kernel stamps TCP, else `user`."""
    with stamping():
        return "kernel" if stamps_come() else "user"


def stamps_come(limit_s: float = 2.0) -> bool:
    """Whether the kernel stamps TCP, asked without our own reader; it may take a moment to begin."""
    if not sys.platform.startswith("linux"):
        return False
    with tcp_pair() as (near, far):
        near.settimeout(10)
        with contextlib.suppress(OSError):
            near.setsockopt(socket.SOL_SOCKET, OPTION, 1)
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            far.sendall(b"x")
            if any(kind == OPTION for _, kind, _ in near.recvmsg(100, 100)[1]):
                return True
    return False


async def settled(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    loop = asyncio.get_running_loop()
    holds: asyncio.Future[None] = loop.create_future()

    def look() -> None:
        if condition():
            holds.set_result(None)
        else:
            loop.call_later(0.001, look)

    look()
    await asyncio.wait_for(holds, 10)


def limited(work: Callable[[], Coroutine[None, None, None]], *, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Run it on such a loop, but not for ever."""

    async def running() -> None:
        async with asyncio.timeout(20):
            await work()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(running())
