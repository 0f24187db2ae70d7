"""What all requests of a load are sent with: straight over our own connections, or through aiohttp."""

import asyncio
import functools
from typing import Protocol

from deploytui.load.client import Target, connect
from deploytui.load.exchange import User
from deploytui.load.kernel_clock import KernelClock
from deploytui.load.meter import Meter
from deploytui.load.orders import LoadOrder
from deploytui.load.start import explaining

LOOK_S = 0.02
"""Between two looks at how late the event loop is, where nothing else tells [s]."""


class Means(Protocol):
    """How a load sends its requests."""

    path: str
    """`tcp`, `tls` or `aiohttp`."""
    meter: Meter
    """How long bytes waited for this process."""
    clock: KernelClock

    def user(self, number: int) -> User:
        """A user that is not connected yet."""

    async def close(self) -> None:
        """Let go of what the users share."""


def means_of(order: LoadOrder, target: Target) -> Means:
    """The means that the order asks for; needs a running event loop."""
    return Direct(order, target) if order.transport == "direct" else ThroughLibrary(order, target)


class Direct:
    """Own connections, read with the kernel's stamps."""

    def __init__(self, order: LoadOrder, target: Target) -> None:
        self.path = "tls" if target.tls else "tcp"
        self.clock, self.meter = KernelClock(), Meter()
        self._order = order
        self._dial = explaining(functools.partial(connect, target, self.clock, self.meter))

    def user(self, number: int) -> User:
        """A user that is not connected yet."""
        return User(number, self._dial, timeout_s=self._order.request_timeout_s, keep_text=self._order.keep_text)

    async def close(self) -> None:
        """Nothing: each user has a connection of its own."""


class ThroughLibrary:
    """One aiohttp session; stamps are this process's own, so a timer tells how late it is."""

    def __init__(self, order: LoadOrder, target: Target) -> None:
        from deploytui.load.library import Library  # takes long to load

        self.path = "aiohttp"
        self.clock, self.meter = KernelClock(), Meter()
        self._order = order
        self._library: Library = Library(target)
        self._loop = asyncio.get_running_loop()
        self._due_s = self._loop.time()
        self._timer = self._loop.call_soon(self._look)

    def user(self, number: int) -> User:
        """A user whose connection is the library's."""
        from deploytui.load.library import LibraryUser

        return LibraryUser(
            number, self._library, timeout_s=self._order.request_timeout_s, keep_text=self._order.keep_text
        )

    async def close(self) -> None:
        """Close the session."""
        self._timer.cancel()
        await self._library.close()

    def _look(self) -> None:
        late_s = max(0.0, self._loop.time() - self._due_s)
        self.meter.add(round(late_s * 1e9))
        self._due_s = self._loop.time() + LOOK_S
        self._timer = self._loop.call_at(self._due_s, self._look)
