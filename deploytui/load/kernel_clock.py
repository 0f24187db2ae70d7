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

KERNEL = "kernel"
"""The kernel stamped the bytes as they came in: how busy this process is does not move the stamp."""
USER = "user"
"""This process stamped the bytes, first thing when its event loop handed them over."""
MIXED = "mixed"
"""Some reads have a stamp of the kernel, others of this process."""

JUMP_NS = 1_000_000
"""A change of the clocks' distance above this is a jump [ns]."""
FRESH_NS = 60_000_000_000
"""A stamp older than this, or from the future, is none [ns]."""
MEASURE_EVERY_NS = 1_000_000_000
"""Age at which the distance is measured anew by the next read; finds the steps too small for a jump [ns]."""
PROBE_S, PROBES = 1e-3, 50
"""How often the kernel is asked whether it stamps yet, before a load begins."""
TRIES = 15
"""Clock readings of one measurement; the tightest counts."""

SO_TIMESTAMPNS: int = getattr(socket, "SO_TIMESTAMPNS", 35)
"""The option, and the kind of ancillary data it brings; not every supported Python names it."""

_TIMESPEC = struct.Struct("@ll")
_SOCKET, _STAMP_BYTES, _unpack = socket.SOL_SOCKET, _TIMESPEC.size, _TIMESPEC.unpack
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
def stamping() -> Iterator[bool]:
    """Keep the kernel stamping meanwhile: it begins some time after the first socket asked and ends with the last.

    Gives whether it does; waits a little for its beginning, so that the first answer finds it going.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        yield ask_for_stamps(held) and _begins(held)


def _begins(held: socket.socket) -> bool:
    try:
        held.bind(("127.0.0.1", 0))
        held.connect(held.getsockname())
        held.settimeout(PROBE_S)
        return any(_is_stamped(held) for _ in range(PROBES))
    except OSError:  # a sandbox without loopback: the first reads will tell
        return False


def _is_stamped(held: socket.socket) -> bool:
    held.send(b"?")
    _, ancillary, _, _ = held.recvmsg(1, ANCILLARY_BYTES)
    if ancillary:
        return True
    time.sleep(PROBE_S)
    return False


class KernelClock:
    """Carries stamps to the monotonic clock, and refuses those that a jump of the wall clock may have touched."""

    def __init__(self, *, monotonic: ReadClock = time.monotonic_ns, wall: ReadClock = time.time_ns) -> None:
        self.jumps = 0
        """How often the wall clock was seen to jump."""
        self.carry = self.carried
        """`carried`, once for all connections: one of its own for each would be one more thing to fetch at a read."""
        self._monotonic, self._wall = monotonic, wall
        self._suspect_wall_ns = 0
        self._suspect_until_ns = 0
        self._hold(self._tightest())

    def settle(self) -> None:
        """Look whether the wall clock jumped. To be done between reads and the carrying of their stamps: then a jump is
        known before any stamp of its time is believed.
        """
        now_ns = self._monotonic()
        if now_ns > self._due_ns or not self._least_ns <= self._wall() - now_ns <= self._most_ns:
            held = self._held
            if now_ns > held.at_ns + MEASURE_EVERY_NS or abs(self._wall() - now_ns - held.wall_ahead_ns) > JUMP_NS:
                self._measured()

    def carried(self, ancillary: Ancillary, now_ns: int) -> int | None:
        """The stamp that came with a read, on the monotonic clock [ns], read there at `now_ns`; None when there is
        none or it can't be believed.
        """
        for level, kind, data in ancillary:
            if kind == SO_TIMESTAMPNS and level == _SOCKET and len(data) == _STAMP_BYTES:
                seconds, rest = _unpack(data)
                stamp_ns = seconds * 1_000_000_000 + rest
                at_ns: int = stamp_ns - self._ahead_ns
                if at_ns <= now_ns <= self._due_ns and now_ns - at_ns < FRESH_NS:
                    return at_ns
                return self.believed(stamp_ns, now_ns)
        return None

    def believed(self, stamp_ns: int, now_ns: int) -> int | None:
        """A stamp on the wall clock carried over likewise, with everything looked at."""
        at_ns = stamp_ns - self._ahead_ns
        if now_ns < at_ns <= now_ns + self._held.width_ns:  # no future, only how finely the distance is known
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
        self._hold(new)
        return new

    def _hold(self, distance: "_Distance") -> None:
        """From now on this is the distance; a read needs nothing else while it holds and no stamp is suspect."""
        self._held, self._ahead_ns = distance, distance.wall_ahead_ns
        self._least_ns, self._most_ns = self._ahead_ns - JUMP_NS, self._ahead_ns + JUMP_NS
        self._due_ns = distance.at_ns + MEASURE_EVERY_NS if distance.at_ns > self._suspect_until_ns else 0

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
