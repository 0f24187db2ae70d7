"""Two ends of a TCP connection on loopback, and whether the kernel stamps what comes in there."""

import asyncio
import contextlib
import functools
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

from deploytui.load.kernel_clock import KernelClock, ask_for_stamps, stamping
from deploytui.load.tcp import TcpWire
from deploytui.load.wire import Read

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


@contextlib.contextmanager
def wired(clock: KernelClock | None = None) -> Iterator[tuple[TcpWire, socket.socket]]:
    """A wire and the server's end; needs a running event loop."""
    with tcp_pair() as (near, far):
        near.setblocking(False)
        wire = TcpWire(near, clock or KernelClock(), stamped=ask_for_stamps(near))
        try:
            yield wire, far
        finally:
            wire.close()


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


def limited(work: Callable[[], Awaitable[None]]) -> None:
    """Run it, but not for ever."""

    async def running() -> None:
        async with asyncio.timeout(20):
            await work()

    asyncio.run(running())


async def read_bytes(wire: TcpWire, count: int) -> list[Read]:
    """Reads until so many bytes came."""
    reads: list[Read] = []
    while sum(len(read.data) for read in reads) < count:
        reads.append(await wire.read())
        assert reads[-1].data, "the stream ended early"
    return reads
