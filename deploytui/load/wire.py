"""What an open connection to the server is to those who send requests on it."""

from collections.abc import Iterable
from typing import Protocol

from deploytui.load.kernel_clock import KERNEL, MIXED, USER

__all__ = ["KERNEL", "MIXED", "USER", "Connection", "clock_of"]


class Sink(Protocol):
    """What takes in an answer; an `Answer` is one."""

    sent_ns: int
    over: bool
    done_ns: int | None
    late_merged: int

    def read(self, data: bytes, at_ns: int, kernel: bool = False, /) -> int:
        """Take what one read brought; how many generated chunks it held."""

    def eof(self, at_ns: int) -> None:
        """The peer closed the connection."""

    def fail(self, kind: str, text: str, at_ns: int) -> None:
        """The connection broke."""


class Connection(Protocol):
    """An open connection to the server, with at most one answer coming in."""

    connect_ns: int
    """How long it took to set up, TLS included [ns]."""

    @property
    def quiet(self) -> bool:
        """Whether it is open and nothing unasked came in."""

    def ask(self, answer: Sink, request: bytes) -> None:
        """Hand the request to the kernel, stamped right before; what comes in then is folded into the answer."""

    async def news(self) -> None:
        """Wait until the answer is over, or `[DONE]` came."""

    def wake(self) -> None:
        """Have `news` return: somebody else ended the answer."""

    def close(self) -> None:
        """Let go of it at once."""


def clock_of(clocks: Iterable[str]) -> str:
    """The word for the clocks of many reads; that of this process when there was no read."""
    used = set(clocks)
    return MIXED if len(used) > 1 else next(iter(used), USER)
