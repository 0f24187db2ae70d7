"""What happens before the clock runs: room for the connections, the connections, a common start."""

import asyncio
import errno
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from deploytui.load.exchange import Connect, User
from deploytui.load.orders import LoadOrder
from deploytui.load.trouble import LoadError
from deploytui.load.wire import Connection
from deploytui.units import NS

SPARE_FILES = 64
"""Descriptors the worker needs beside its connections."""
AT_ONCE = 64
"""Connections that are opened at the same time: more could overrun the server's queue, which costs seconds."""
PATIENCE_S = 10.0
"""How long opening connections beforehand may take [s]; the requests open those that are missing."""

_USED_UP = {
    errno.EADDRNOTAVAIL: "All local ports to this server are in use. Send fewer requests at once or slower, have the "
    "server keep its connections, or widen net.ipv4.ip_local_port_range.",
    errno.EMFILE: "This process has no open file left for a connection. Raise the limit (ulimit -n), or send fewer "
    "requests at once.",
    errno.ENFILE: "This node has no open file left for a connection. Raise fs.file-max, or send fewer requests "
    "at once.",
}


def allow_files(order: LoadOrder, users: int) -> None:
    """Raise the soft limit of open files as far as needed; raises LoadError when the hard one forbids it.

    An open loop may need any number of connections, so it gets all that this user may have.
    """
    needed = users + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise LoadError(
            f"The load needs {needed} open files, this user may have {hard}.",
            fix="Lower concurrency, use more load_workers, or raise the limit (ulimit -n).",
        )
    if order.loop == "open" and hard != resource.RLIM_INFINITY:
        needed = hard
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def explaining(dial: Callable[[], Awaitable[Connection]]) -> Connect:
    """Dials, and says what to do where ports or files are used up."""

    async def connect() -> Connection:
        try:
            return await dial()
        except OSError as error:
            if (text := _USED_UP.get(error.errno or 0)) is not None:
                raise OSError(error.errno, text) from error
            raise

    return connect


async def open_connections(users: Sequence[User], unless: asyncio.Future[Any]) -> int:
    """Connect the users before the clock runs, some at a time, unless the other comes first; how many are connected.

    One that can't be will say why when it asks.
    """
    waiting = iter(users)

    async def some() -> None:
        for user in waiting:
            await user.connect()

    work = asyncio.gather(*(some() for _ in range(min(AT_ONCE, len(users)))))
    waited: set[asyncio.Future[Any]] = {work, unless}
    await asyncio.wait(waited, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    work.cancel()
    await asyncio.wait({work})
    return sum(user.connected for user in users)


async def moment(at_ns: int, unless: asyncio.Future[Any]) -> int:
    """Wait for a moment of the monotonic clock, unless the other comes first; when the wait ended [ns].

    That is the moment itself, when it was not past already.
    """
    left_ns = at_ns - time.monotonic_ns()
    if left_ns > 0:
        await asyncio.wait({unless}, timeout=left_ns * NS)
        if not unless.done():
            return at_ns
    return time.monotonic_ns()
