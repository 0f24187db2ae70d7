"""A connection of the paced server: bytes in with the time they came, bytes out without ever waiting; TLS on demand."""

from __future__ import annotations

import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, Optional

READ_BYTES = 1 << 16
SO_TIMESTAMPNS: int = getattr(socket, "SO_TIMESTAMPNS", 35)
TIMESPEC = struct.Struct("@ll")
FRESH_NS = 60_000_000_000
"""A stamp older than this, or from the future, is none [ns]."""


class Seen(NamedTuple):
    """When bytes came [ns, monotonic], and whether the kernel says so."""

    at_ns: int
    by_kernel: bool


def ask_for_stamps(sock: socket.socket) -> None:
    """Have the kernel stamp what comes in, where it can: then it does not matter how busy this process is."""
    if sys.platform.startswith("linux"):
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        except OSError:
            return


def seen(ancillary: list[tuple[int, int, bytes]]) -> Seen:
    """When a read's bytes came: by the kernel's stamp where it is to be believed, else now."""
    wall_ns, now_ns = time.time_ns(), time.monotonic_ns()
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) == TIMESPEC.size:
            seconds, rest = TIMESPEC.unpack(data)
            age_ns = wall_ns - (seconds * 1_000_000_000 + rest)
            if 0 <= age_ns < FRESH_NS:
                return Seen(now_ns - age_ns, True)
    return Seen(now_ns, False)


class Wire:
    """Plain TCP."""

    def __init__(self, sock: socket.socket, wants_room: Callable[[bool], None]) -> None:
        self.sock = sock
        self.pending = bytearray()
        self.blocked = False
        """Whether the kernel had no room since this was last set to False."""
        self.seen = Seen(0, False)
        """When the newest bytes came."""
        self._wants_room = wants_room
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask_for_stamps(sock)

    @property
    def fast_send(self) -> Callable[[bytes], int]:
        """Hands bytes to the kernel as directly as can be; how many it took. Raises OSError."""
        return self.send if self.pending else self.sock.send

    def receive(self) -> Optional[bytes]:
        """What came; None at the end of the connection. Raises OSError."""
        try:
            data, ancillary, _, _ = self.sock.recvmsg(READ_BYTES, socket.CMSG_SPACE(TIMESPEC.size))
        except BlockingIOError:
            return b""
        self.seen = seen(ancillary)
        return data or None

    def send(self, content: bytes) -> int:
        """Send, behind what already waits; all of it is taken."""
        if self.pending:
            self.pending += content
            return len(content)
        try:
            sent = self.sock.send(content)
        except BlockingIOError:
            sent = 0
        if sent != len(content):
            self.hold(content[sent:])
        return len(content)

    def say(self, content: bytes) -> None:
        """Send; that the client is gone is found out by reading."""
        try:
            self.send(content)
        except OSError:
            return

    def hold(self, rest: bytes) -> None:
        """Keep bytes until the kernel has room."""
        self.pending += rest
        self.blocked = True
        self._wants_room(True)

    def let_go(self) -> None:
        """Close it: whatever is still sent fails."""
        self.pending.clear()
        self.sock.close()

    def drain(self) -> None:
        """There is room: send what waits. Raises OSError."""
        del self.pending[: self.sock.send(self.pending)]
        if not self.pending:
            self._wants_room(False)


class SealedWire(Wire):
    """TLS over it, so that a client's HTTPS path can be measured."""

    def __init__(self, sock: socket.socket, wants_room: Callable[[bool], None], context: ssl.SSLContext) -> None:
        super().__init__(sock, wants_room)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._open = False

    @property
    def fast_send(self) -> Callable[[bytes], int]:
        """Seals first, so there is no shorter way."""
        return self.send

    def receive(self) -> Optional[bytes]:
        """What came, unsealed; an ssl.SSLError is an OSError."""
        data = super().receive()
        if not data:
            return data
        self._in.write(data)
        plain = self._unsealed()
        if self._out.pending:
            super().send(self._out.read())
        return plain

    def send(self, content: bytes) -> int:
        """Seal and send; all of it is taken."""
        self._tls.write(content)
        super().send(self._out.read())
        return len(content)

    def _unsealed(self) -> Optional[bytes]:
        parts = []
        try:
            if not self._open:
                self._tls.do_handshake()
                self._open = True
            while part := self._tls.read(READ_BYTES):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts)
        return b"".join(parts) or None
