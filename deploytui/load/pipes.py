"""The worker's two pipes: orders in on standard input, which is its leash, and lines out that never make it wait."""

import os
import select

import msgspec
from msgspec import Struct

from deploytui.load.orders import LoadOrder, Said
from deploytui.load.trouble import LoadError

ORDER_CAP = 16 << 20
"""Longest line on standard input [bytes]."""
LAST_WAIT_MS = 2000
"""How long the last line may wait for room once the leash is let go [ms]."""


def claim_stdout() -> int:
    """Keep standard output for our lines; what a library prints goes to standard error. Gives the descriptor."""
    lines = os.dup(1)
    os.dup2(2, 1)
    if not os.isatty(lines):  # a terminal's state is shared with the shell
        os.set_blocking(lines, False)
    return lines


class _Word(Struct):
    do: str | None = None


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

    def told_to_stop(self) -> bool:
        """Whether the load shall end now: a word said so, or the input closed."""
        *lines, self._buffer = self._buffer.split(b"\n")
        return self.closed or any(_word(line) == "stop" for line in lines)


def _word(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=_Word).do
    except ValueError:
        return None


class Outbox:
    """Lines of standard output; `gone` once nobody reads them any more."""

    def __init__(self, fd: int) -> None:
        self.gone = False
        self._fd = fd
        self._started = b""
        self._encode = msgspec.json.Encoder().encode

    def offer(self, said: Said) -> bool:
        """Say it if the pipe has room, else drop it; a line once started is finished first. Whether it was said."""
        self._push()
        if self._started or self.gone:
            return False
        self._started = self._encode(said) + b"\n"
        length = len(self._started)
        self._push()
        if len(self._started) == length:
            self._started = b""
            return False
        return True

    def insist(self, said: Said, leash: Inbox) -> None:
        """Say it and wait until it is taken, as long as the leash is held. Only for when no clock runs any more."""
        self._started += self._encode(said) + b"\n"
        self._push()
        while self._started and not self.gone and self._room(leash):
            self._push()

    def _room(self, leash: Inbox) -> bool:
        """Wait for room in the pipe; False when the leash is let go and there is none soon."""
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        if not leash.closed:
            poll.register(leash.fd, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(LAST_WAIT_MS if leash.closed else None)}
        if leash.fd in ready:
            leash.take()
        return bool(ready)

    def _push(self) -> None:
        try:
            while self._started:
                self._started = self._started[os.write(self._fd, self._started) :]
        except BlockingIOError:
            return
        except OSError:
            self.gone = True
