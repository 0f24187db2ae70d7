"""What an engine wrote, in files that never grow beyond a bound and never make the engine wait for the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable

HEAD_BYTES = 16 << 20
TAIL_BYTES = 8 << 20
FULL = b"[deploytui] this log is full; what follows is in %s, what fell out of that in its .1\n"
LOST = b"\n[deploytui] %d bytes of output are missing here: they could not be written\n"
HIDDEN = "…".encode()
"""What stands in the place of a secret."""
SPARE_BYTES = 512
"""Room kept for our own lines [B]."""


class Sink:
    """A file with a bound that bytes are appended to, and that is tried again when the disk refused it."""

    def __init__(self, path: str, bound: int) -> None:
        self.path, self.bound, self.fd, self.size, self.lost = path, bound, -1, 0, 0

    def open(self) -> bool:
        """Open it, after what it holds already; False when that can't be."""
        try:
            if self.fd < 0:
                self.fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self.size = os.fstat(self.fd).st_size
        except OSError:
            return False
        return True

    def room(self) -> int:
        """How much more it takes [B]."""
        self.open()
        return max(0, self.bound - SPARE_BYTES - self.size)

    def add(self, data: bytes) -> None:
        """Append what the disk takes; what it does not take is counted, and told when it takes again."""
        left = LOST % self.lost + data if self.lost else data
        try:
            while left and self.open():
                written = os.write(self.fd, left)
                self.size, left, self.lost = self.size + written, left[written:], 0
        except OSError:
            self.lost += min(len(left), len(data))
            return
        self.lost += min(len(left), len(data))

    def renew(self, aside: str) -> None:
        """Move the file aside and begin a new one; where it can't be moved, empty it."""
        try:
            os.replace(self.path, aside)
        except OSError:
            self.empty()
            return
        os.close(self.fd)
        self.fd, self.size = -1, 0

    def empty(self) -> None:
        """Give up what it holds, where the disk lets us."""
        try:
            os.ftruncate(self.fd, 0)
        except OSError:
            return
        self.size = 0


class Mask:
    """Puts a sign in the place of secrets, also where one comes in two reads; what may be one's beginning waits."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = sorted({secret.encode() for secret in secrets if secret}, key=len, reverse=True)
        self.held = b""

    def feed(self, data: bytes) -> bytes:
        """What can be written now."""
        if not self.secrets:
            return data
        data = self.held + data
        for secret in self.secrets:
            data = data.replace(secret, HIDDEN)
        cut = len(data) - max(begun(data, secret) for secret in self.secrets)
        self.held = data[cut:]
        return data[:cut]

    def rest(self) -> bytes:
        """What still waits, when nothing more will come."""
        held, self.held = self.held, b""
        return held


def begun(data: bytes, secret: bytes) -> int:
    """How many bytes at the end are the beginning of the secret."""
    longest = min(len(data), len(secret) - 1)
    return next((size for size in range(longest, 0, -1) if data.endswith(secret[:size])), 0)


class Log:
    """The first 16 MiB of the output in one file, the last 4 to 8 MiB of the rest in two halves."""

    def __init__(self, head: str, tail: str, secrets: Iterable[str] = ()) -> None:
        self.mask = Mask(secrets)
        self.head, self.tail, self.full = Sink(head, HEAD_BYTES), Sink(tail, TAIL_BYTES // 2), False
        self.at_line_start = True
        self.note = FULL % os.path.basename(os.fsencode(tail))

    def add(self, data: bytes) -> None:
        """Put it where there is room, without secrets; never raises for the disk."""
        if data := self.mask.feed(data):
            self.write(data)

    def end(self) -> None:
        """Nothing more will come."""
        if data := self.mask.rest():
            self.write(data)

    def write(self, data: bytes) -> None:
        """Put it where there is room."""
        room = 0 if self.full else self.head.room()
        if self.full:
            self.add_last(data)
        elif len(data) <= room:
            self.head.add(data)
            self.at_line_start = data.endswith(b"\n")
        else:
            self.turn(data, room)

    def turn(self, data: bytes, room: int) -> None:
        """End the head, at the end of a line where there is one, and go on in the tail."""
        cut = data.rfind(b"\n", 0, room) + 1
        whole = cut > 0 or self.at_line_start
        cut = cut if whole else room
        self.head.add(data[:cut] + (b"" if whole else b"\n") + self.note)
        self.full = True
        self.add_last(data[cut:])

    def add_last(self, data: bytes) -> None:
        """Keep it in the tail at the cost of the oldest half."""
        if len(data) > self.tail.room():
            self.tail.renew(self.tail.path + ".1")
        if len(data) <= self.tail.room():
            self.tail.add(data)
        else:
            self.tail.lost += len(data)
