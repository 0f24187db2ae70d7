"""The worker's two pipes: orders in on standard input, which is its leash, and lines out that never make it wait."""

import os
import select

import msgspec
from msgspec import Struct

from deploytui.load.lines_out import LineOut
from deploytui.load.orders import LoadOrder, Said, Stopped
from deploytui.load.trouble import LoadError

ORDER_CAP = 16 << 20
"""Longest line on standard input [bytes]."""
LAST_WAIT_MS = 2000
"""How long the last line may wait for room once the leash is let go [ms]."""


class Word(Struct, frozen=True):
    """A line behind the order: `start` at a moment of the monotonic clock, or `stop` for a reason."""

    do: str | None = None
    at_ns: int = 0
    why: Stopped = "cancelled"


class Inbox:
    """Lines of standard input; `closed` once the other side let go of it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.closed = False
        self._buffer = b""

    def order(self) -> LoadOrder | None:
        """Wait for the order, the first line; None when the input closes before it. Raises LoadError."""
        while b"\n" not in self._buffer and not self.closed:
            self.take()
        line, newline, self._buffer = self._buffer.partition(b"\n")
        if not newline:
            return None
        try:
            return msgspec.json.decode(line, type=LoadOrder)
        except ValueError as error:
            raise LoadError("The order can't be read.", why=str(error)) from error

    def take(self) -> None:
        """Read what is there; waits when nothing is."""
        data = os.read(self.fd, 1 << 16)
        self._buffer += data
        self.closed = self.closed or not data or len(self._buffer) > ORDER_CAP

    def words(self) -> list[Word]:
        """The words that came whole since the last call; a line that is none is passed over."""
        *lines, self._buffer = self._buffer.split(b"\n")
        return [word for line in lines if (word := _word(line)) is not None]


def _word(line: bytes) -> Word | None:
    try:
        return msgspec.json.decode(line, type=Word)
    except ValueError:
        return None


class Outbox:
    """Lines of standard output; `gone` once nobody reads them any more."""

    def __init__(self, out: LineOut) -> None:
        self._out = out
        self._encode = msgspec.json.Encoder().encode

    @property
    def gone(self) -> bool:
        """Whether nobody reads any more."""
        return self._out.gone

    def offer(self, said: Said) -> bool:
        """Say it if the pipe has room, else drop it. Whether it was said."""
        return self._out.offer(self._encode(said) + b"\n")

    def insist(self, said: Said, leash: Inbox) -> None:
        """Say it and wait until it is taken, as long as the leash is held. Only for when no clock runs."""
        self._out.begin(self._encode(said) + b"\n")
        while self._out.unfinished and not self.gone and self._room(leash):
            self._out.push()

    def _room(self, leash: Inbox) -> bool:
        """Wait for room in the pipe; False when the leash is let go and there is none soon."""
        poll = select.poll()
        poll.register(self._out.fd, select.POLLOUT)
        if not leash.closed:
            poll.register(leash.fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(LAST_WAIT_MS if leash.closed else None)}
        if leash.fd in ready:
            leash.take()
        return bool(ready)
