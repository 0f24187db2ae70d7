"""TLS on the same sockets: what is read is decrypted in memory, and keeps the kernel's stamp of its last bytes."""

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable

from deploytui.load.backlog import Received
from deploytui.load.kernel_clock import KernelClock
from deploytui.load.loop import READ_BYTES
from deploytui.load.meter import Meter
from deploytui.load.tcp import TcpWire, dialled

RECORD_BYTES = 16 << 10
"""The longest piece that is encrypted as one; nothing of it can be told before it is whole."""


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Made once, before any clock runs: reading the certificates takes tens of milliseconds."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial_tls(address: str, port: int, host: str, clock: KernelClock, meter: Meter) -> "TlsWire":
    """A fresh connection whose certificate was checked for `host`; raises OSError."""
    sock = await dialled(address, port)
    try:
        session = _Session(host)
        await session.shake_hands(sock)
    except BaseException:
        sock.close()
        raise
    return TlsWire(sock, clock, meter, session)


class _Session:
    """The cipher between two buffers in memory."""

    def __init__(self, host: str) -> None:
        self._coming, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls_context().wrap_bio(self._coming, self._going, server_hostname=host)

    async def shake_hands(self, sock: socket.socket) -> None:
        """Agree on keys; raises OSError when the peer or its certificate is not the right one."""
        loop = asyncio.get_running_loop()
        while not self._agreed():
            await loop.sock_sendall(sock, self._going.read())
            data = await loop.sock_recv(sock, READ_BYTES)
            if not data:
                raise ConnectionResetError("the server closed the connection during the TLS handshake")
            self._coming.write(data)
        await loop.sock_sendall(sock, self._going.read())

    def _agreed(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def sealed(self, data: bytes) -> bytes:
        """Encrypted."""
        self._tls.write(data)
        return self._going.read()

    def opened(self, data: bytes) -> bytes:
        """All that is whole with these bytes, decrypted; raises OSError."""
        self._coming.write(data)
        plain = []
        try:
            while piece := self._tls.read(READ_BYTES):
                plain.append(piece)
        except ssl.SSLWantReadError:
            pass
        return b"".join(plain)


class TlsWire(TcpWire):
    """A connection whose bytes are encrypted."""

    __slots__ = ("_session",)

    def __init__(self, sock: socket.socket, clock: KernelClock, meter: Meter, session: _Session) -> None:
        self._session = session
        super().__init__(sock, clock, meter)

    def _reading(self) -> Callable[[int, int], Received]:
        return self._read

    def _read(self, size: int, room: int) -> Received:
        """What a read says, as `recvmsg` gives it; raises BlockingIOError while nothing is whole."""
        sealed, ancillary, flags, address = self._sock.recvmsg(max(size, RECORD_BYTES), room)
        data = self._session.opened(sealed) if sealed else b""
        if sealed and not data:
            raise BlockingIOError
        return data, ancillary, flags, address

    def _sealed(self, request: bytes) -> bytes:
        return self._session.sealed(request)
