"""Where requests go, and a fresh connection to there."""

import socket
import time
from urllib.parse import urlsplit

from msgspec import Struct

from deploytui.load.kernel_clock import KernelClock
from deploytui.load.meter import Meter
from deploytui.load.tcp import dial
from deploytui.load.tls import dial_tls, tls_context
from deploytui.load.trouble import LoadError
from deploytui.load.wire import Connection


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
        tls_context()
    port = port or (443 if tls else 80)
    return Target(host=host, port=port, addresses=_addresses(host, port), path=parts.path.rstrip("/"), tls=tls)


def _addresses(host: str, port: int) -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise LoadError(f"The host {host!r} has no address.", why=str(error), fix="Look at base_url.") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


async def connect(target: Target, clock: KernelClock | None = None, meter: Meter | None = None) -> Connection:
    """A fresh connection, straight to the target: proxy variables are not looked at. Raises OSError.

    All connections of a load share one `clock`, so that each jump of the wall clock is seen once, and one `meter`.
    """
    clock, meter = clock or KernelClock(), meter or Meter()
    begin = time.monotonic_ns()
    errors: list[OSError] = []
    for address in target.addresses:
        try:
            if target.tls:
                wire: Connection = await dial_tls(address, target.port, target.host, clock, meter)
            else:
                wire = await dial(address, target.port, clock, meter)
        except OSError as error:
            errors.append(error)
        else:
            wire.connect_ns = time.monotonic_ns() - begin
            return wire
    raise errors[0]
