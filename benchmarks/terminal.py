"""A program in a terminal of its own: what it writes, and when."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """What came out of a program: bytes with the seconds since its start."""

    pieces: tuple[tuple[float, bytes], ...]

    def first(self, sign: bytes) -> float | None:
        """Seconds until `sign` had been written; None when it never was."""
        so_far = b""
        for at_s, piece in self.pieces:
            so_far += piece
            if sign in so_far:
                return at_s
        return None

    def bytes_between(self, begin_s: float, end_s: float) -> int:
        """Bytes written in a stretch of time."""
        return sum(len(piece) for at_s, piece in self.pieces if begin_s <= at_s < end_s)


def started(argv: Sequence[str], size: tuple[int, int] = (36, 120)) -> tuple[int, int]:
    """A program in a fresh terminal: its pid, and the descriptor of the other end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(argv[0], list(argv))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    return pid, terminal


def watch(
    argv: Sequence[str], seconds: float, *, until: bytes | None = None, size: tuple[int, int] = (36, 120)
) -> Seen:
    """Run a program in a fresh terminal for some seconds, or until it has written `until`; it is killed then."""
    began = time.monotonic()
    pid, terminal = started(argv, size)
    try:
        return Seen(tuple(_pieces(terminal, began, seconds, until)))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _pieces(terminal: int, began: float, seconds: float, until: bytes | None) -> list[tuple[float, bytes]]:
    pieces: list[tuple[float, bytes]] = []
    while (left := began + seconds - time.monotonic()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            break
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        pieces.append((time.monotonic() - began, piece))
        if until is not None and until in b"".join(part for _, part in pieces[-4:]):
            break
    return pieces
