"""The wire: a connection gives `(bytes, at_ns, clock)` per read; who takes the stamp is known here and nowhere else."""

import asyncio
import contextlib
import functools
import socket
import ssl
import time
from collections import deque
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from deploytui.load.trouble import LoadError

CLOCK = "user"
"""Who took the stamps of this implementation: this process, first thing when its event loop hands over the bytes."""


class Read(NamedTuple):
    """What one read brought; no bytes at the end of the stream."""

    data: bytes
    at_ns: int
    clock: str


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


class Target(Struct, frozen=True, kw_only=True):
    """Where requests go: addresses are resolved once, so that no name lookup is ever measured."""

    host: str
    port: int
    addresses: tuple[str, ...]
    path: str
    """What stands before `/v1`."""
    tls: bool

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def resolve(base_url: str) -> Target:
    """The target of a base URL; raises LoadError when it is no http(s) URL or its host has no address."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise LoadError(f"{base_url!r} is no URL.", why=str(error)) from error
    if parts.scheme not in ("http", "https") or not host:
        raise LoadError(f"{base_url!r} is no http:// or https:// URL.", fix="Give base_url as http://HOST:PORT.")
    tls = parts.scheme == "https"
    if tls:
        _tls_context()
    port = port or (443 if tls else 80)
    return Target(host=host, port=port, addresses=_addresses(host, port), path=parts.path.rstrip("/"), tls=tls)


def _addresses(host: str, port: int) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LoadError(f"The host {host!r} has no address.", why=str(error), fix="Look at base_url.") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """Made once, before any clock runs: reading the certificates takes tens of milliseconds."""
    return ssl.create_default_context()


async def connect(target: Target) -> Connection:
    """A fresh connection, straight to the target: proxy variables are not looked at. Raises OSError."""
    context = _tls_context() if target.tls else None
    begin = time.monotonic_ns()
    name = target.host if target.tls else None
    errors: list[OSError] = []
    loop = asyncio.get_running_loop()
    for address in target.addresses:
        try:
            _, wire = await loop.create_connection(_Wire, address, target.port, ssl=context, server_hostname=name)
        except OSError as error:
            errors.append(error)
        else:
            wire.connect_ns = time.monotonic_ns() - begin
            return wire
    raise errors[0]


class _Wire(asyncio.Protocol):
    """A connection over asyncio; reads wait in a queue, each with the stamp it got on arrival."""

    def __init__(self) -> None:
        self.connect_ns = 0
        self._reads: deque[Read] = deque()
        self._broken: OSError | None = None
        self._end_ns: int | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        with contextlib.suppress(OSError):  # asyncio does this for TCP by itself today
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        at_ns = time.monotonic_ns()
        self._reads.append(Read(data, at_ns, CLOCK))
        self._wake()

    def eof_received(self) -> None:
        self._end(time.monotonic_ns())

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, OSError) and self._end_ns is None:
            self._broken = exc
        self._end(time.monotonic_ns())

    @property
    def quiet(self) -> bool:
        closing = self._transport is None or self._transport.is_closing()
        return not self._reads and self._end_ns is None and not closing

    def send(self, request: bytes) -> int:
        assert self._transport is not None
        at_ns = time.monotonic_ns()
        self._transport.write(request)
        return at_ns

    async def read(self) -> Read:
        while not self._reads:
            if self._broken is not None:
                raise self._broken
            if self._end_ns is not None:
                return Read(b"", self._end_ns, CLOCK)
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._reads.popleft()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _end(self, at_ns: int) -> None:
        if self._end_ns is None:
            self._end_ns = at_ns
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
