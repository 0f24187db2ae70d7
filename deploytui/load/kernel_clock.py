"""The kernel's receive stamps, carried from its wall clock to the monotonic clock.

Both clocks are slewed alike, so their distance is constant until the wall clock is set or the machine slept: one tight
measurement holds until then, and each read looks whether it still does.
"""

import contextlib
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

JUMP_NS = 1_000_000
"""A change of the clocks' distance above this is a jump [ns]."""
FRESH_NS = 60_000_000_000
"""A stamp older than this, or from the future, is none [ns]."""
MEASURE_EVERY_NS = 1_000_000_000
"""Age at which the distance is measured anew by the next read; finds the steps too small for a jump [ns]."""
TRIES = 15
"""Clock readings of one measurement; the tightest counts."""

SO_TIMESTAMPNS: int = getattr(socket, "SO_TIMESTAMPNS", 35)
"""The option, and the kind of ancillary data it brings; not every supported Python names it."""

_TIMESPEC = struct.Struct("@ll")
ANCILLARY_BYTES = socket.CMSG_SPACE(_TIMESPEC.size)
"""Room for one stamp beside the bytes of a read."""

Ancillary = Iterable[tuple[int, int, bytes]]
ReadClock = Callable[[], int]


def ask_for_stamps(sock: socket.socket) -> bool:
    """Ask the kernel to stamp what comes in; False where it refuses. True promises nothing: see the first read."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def stamping() -> Iterator[None]:
    """Keep the kernel stamping meanwhile: it begins some time after the first socket asked and ends with the last."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        ask_for_stamps(held)
        yield


def stamp_in(ancillary: Ancillary) -> int | None:
    """The stamp of a read on the wall clock [ns]; None when the kernel gave none."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) == _TIMESPEC.size:
            seconds, rest = _TIMESPEC.unpack(data)
            return int(seconds) * 1_000_000_000 + int(rest)
    return None


class KernelClock:
    """Carries stamps to the monotonic clock, and refuses those that a jump of the wall clock may have touched."""

    def __init__(self, *, monotonic: ReadClock = time.monotonic_ns, wall: ReadClock = time.time_ns) -> None:
        self.jumps = 0
        """How often the wall clock was seen to jump."""
        self._monotonic, self._wall = monotonic, wall
        self._held = self._tightest()
        self._suspect_wall_ns = 0
        self._suspect_until_ns = 0

    def carried(self, stamp_ns: int, now_ns: int) -> int | None:
        """The stamp on the monotonic clock [ns], read there at `now_ns`; None when it can't be believed."""
        held = self._held
        if now_ns - held.at_ns > MEASURE_EVERY_NS or abs(self._wall() - now_ns - held.wall_ahead_ns) > JUMP_NS:
            held = self._measured()
        at_ns = stamp_ns - held.wall_ahead_ns
        if now_ns < at_ns <= now_ns + held.width_ns:  # no future, only how finely the distance is known
            at_ns = now_ns
        suspect = stamp_ns <= self._suspect_wall_ns and now_ns < self._suspect_until_ns
        return at_ns if 0 <= now_ns - at_ns < FRESH_NS and not suspect else None

    def _measured(self) -> "_Distance":
        old, new = self._held, self._tightest()
        moved = new.wall_ahead_ns - old.wall_ahead_ns
        blur = old.width_ns + new.width_ns
        if abs(moved) > JUMP_NS + blur:
            self.jumps += 1
            # Bytes stamped before the jump may still wait in a socket: up to here a stamp can be of either count.
            latest = new.at_ns + max(old.wall_ahead_ns, new.wall_ahead_ns) + blur
            self._suspect_wall_ns = max(self._suspect_wall_ns, latest)
            self._suspect_until_ns = new.at_ns + FRESH_NS
        elif abs(moved) <= blur and new.width_ns > old.width_ns:
            new = new._replace(wall_ahead_ns=old.wall_ahead_ns, width_ns=old.width_ns)
        self._held = new
        return new

    def _tightest(self) -> "_Distance":
        return min((self._once() for _ in range(TRIES)), key=lambda distance: distance.width_ns)

    def _once(self) -> "_Distance":
        before = self._monotonic()
        wall = self._wall()
        after = self._monotonic()
        return _Distance(at_ns=after, wall_ahead_ns=wall - (before + after) // 2, width_ns=after - before)


class _Distance(NamedTuple):
    """How far the wall clock is ahead of the monotonic one, known to within `width_ns`."""

    at_ns: int
    wall_ahead_ns: int
    width_ns: int
