"""A plain TCP connection read with the kernel's stamps.

One read has one stamp: the kernel keeps that of the last segment it hands over, and forgets the others already when it
merges segments in its queue, so smaller reads would tell nothing more.
"""

import asyncio
import contextlib
import socket
import time

from deploytui.load.kernel_clock import ANCILLARY_BYTES, Ancillary, KernelClock, ask_for_stamps, stamp_in
from deploytui.load.wire import KERNEL, USER, Arrivals, Read

READ_BYTES = 64 << 10
"""Most that one read takes."""


async def dial(address: str, port: int, clock: KernelClock) -> "TcpWire":
    """A fresh connection to a numeric address; raises OSError."""
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    family, kind, protocol, _, place = found[0]
    with contextlib.ExitStack() as undone:
        sock = undone.enter_context(socket.socket(family, kind, protocol))
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stamped = ask_for_stamps(sock)
        await asyncio.get_running_loop().sock_connect(sock, place)
        undone.pop_all()
    return TcpWire(sock, clock, stamped=stamped)


class TcpWire:
    """A connection that reads its own non-blocking socket as soon as the event loop says that something came."""

    def __init__(self, sock: socket.socket, clock: KernelClock, *, stamped: bool) -> None:
        self.connect_ns = 0
        self._sock = sock
        self._clock = clock
        self._stamped = stamped
        self._latest_ns = 0
        self._begun = False
        self._unsent = memoryview(b"")
        self._arrivals = Arrivals()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock, self._take)

    @property
    def quiet(self) -> bool:
        """Whether it is open, all was sent and nothing unasked came in."""
        return self._arrivals.none and not self._unsent

    def send(self, request: bytes) -> int:
        """Hand the request to the kernel, what it does not take at once later; gives the stamp right before [ns]."""
        if self._unsent:
            self._unsent = memoryview(self._unsent.tobytes() + request)
            return time.monotonic_ns()
        self._latest_ns = at_ns = time.monotonic_ns()
        self._unsent = memoryview(request)
        self._hand_over()
        if self._unsent:
            self._loop.add_writer(self._sock, self._send_on)
        return at_ns

    async def read(self) -> Read:
        """The next read, in order; raises OSError when the connection broke."""
        return await self._arrivals.take()

    def close(self) -> None:
        """Let go of it at once."""
        self._end()
        if self._sock.fileno() >= 0:
            self._loop.remove_writer(self._sock)
            self._sock.close()

    def _take(self) -> bool:
        """Read once; whether bytes came."""
        try:
            data, ancillary, _, _ = self._sock.recvmsg(READ_BYTES, ANCILLARY_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._end(error)
            return False
        now_ns = time.monotonic_ns()
        if not data:
            self._end()
            return False
        at_ns = self._stamp(ancillary, now_ns) if self._stamped else None
        clock = USER if at_ns is None else KERNEL
        # Never back in time: a stamp of ours, or a finer distance of the clocks, may precede the kernel's.
        self._latest_ns = max(now_ns if at_ns is None else at_ns, self._latest_ns)
        self._arrivals.put(Read(data, self._latest_ns, clock))
        return True

    def _stamp(self, ancillary: Ancillary, now_ns: int) -> int | None:
        wall_ns = stamp_in(ancillary)
        at_ns = None if wall_ns is None else self._clock.carried(wall_ns, now_ns)
        if not self._begun:  # some kernels and sandboxes take the option and never stamp
            self._begun, self._stamped = True, at_ns is not None
        return at_ns

    def _hand_over(self) -> None:
        try:
            self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._unsent = memoryview(b"")
            while not self._arrivals.ended and self._take():  # what the server said before it hung up
                pass
            self._end(error)

    def _send_on(self) -> None:
        self._hand_over()
        if not self._unsent:
            self._loop.remove_writer(self._sock)

    def _end(self, broken: OSError | None = None) -> None:
        if not self._arrivals.ended:
            self._loop.remove_reader(self._sock)
            self._arrivals.end(time.monotonic_ns(), broken)
