"""Where requests go, and a fresh connection to there: plain TCP with the kernel's stamps, TLS with our own."""

import asyncio
import contextlib
import functools
import socket
import ssl
import time
from urllib.parse import urlsplit

from msgspec import Struct

from deploytui.load.kernel_clock import KernelClock
from deploytui.load.tcp import dial
from deploytui.load.trouble import LoadError
from deploytui.load.wire import USER, Arrivals, Connection, Read


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


async def connect(target: Target, clock: KernelClock | None = None) -> Connection:
    """A fresh connection, straight to the target: proxy variables are not looked at. Raises OSError.

    All connections of a load share one `clock`, so that each jump of the wall clock is seen once.
    """
    clock = clock or KernelClock()
    begin = time.monotonic_ns()
    errors: list[OSError] = []
    for address in target.addresses:
        try:
            wire = await (_dial_tls(target, address) if target.tls else dial(address, target.port, clock))
        except OSError as error:
            errors.append(error)
        else:
            wire.connect_ns = time.monotonic_ns() - begin
            return wire
    raise errors[0]


async def _dial_tls(target: Target, address: str) -> "_TlsWire":
    _, wire = await asyncio.get_running_loop().create_connection(
        _TlsWire, address, target.port, ssl=_tls_context(), server_hostname=target.host
    )
    return wire


class _TlsWire(asyncio.Protocol):
    """A connection over asyncio's TLS, stamped by this process: what the kernel stamps is not yet decrypted there."""

    def __init__(self) -> None:
        self.connect_ns = 0
        self._arrivals = Arrivals()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        with contextlib.suppress(OSError):  # asyncio does this for TCP by itself today
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._arrivals.put(Read(data, time.monotonic_ns(), USER))

    def eof_received(self) -> None:
        self._arrivals.end(time.monotonic_ns())

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrivals.end(time.monotonic_ns(), exc if isinstance(exc, OSError) else None)

    @property
    def quiet(self) -> bool:
        closing = self._transport is None or self._transport.is_closing()
        return self._arrivals.none and not closing

    def send(self, request: bytes) -> int:
        assert self._transport is not None
        at_ns = time.monotonic_ns()
        self._transport.write(request)
        return at_ns

    async def read(self) -> Read:
        return await self._arrivals.take()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
