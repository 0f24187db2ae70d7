"""Kernel stamps on the monotonic clock: what is believed is true, whatever the wall clock does meanwhile."""

import socket
import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load import kernel_clock
from deploytui.load.kernel_clock import JUMP_NS, SO_TIMESTAMPNS, KernelClock, ask_for_stamps

MS = 1_000_000
S = 1_000_000_000


@dataclass
class Host:
    """A host whose clocks a test moves; each look at one takes 100 ns."""

    now_ns: int = 50_000 * S
    ahead_ns: int = 1_700_000_000 * S
    look_ns: int = 100

    def monotonic(self) -> int:
        self.now_ns += self.look_ns
        return self.now_ns

    def wall(self) -> int:
        self.now_ns += self.look_ns
        return self.now_ns + self.ahead_ns

    def clock(self) -> KernelClock:
        return KernelClock(monotonic=self.monotonic, wall=self.wall)

    def believes(self, clock: KernelClock, stamp_ns: int) -> int | None:
        """What the clock makes of a stamp read now."""
        now_ns = self.monotonic()
        clock.settle()
        return clock.believed(stamp_ns, now_ns)

    def stamp(self) -> int:
        """The kernel's, of something that comes in now."""
        return self.now_ns + self.ahead_ns


def test_a_stamp_is_told_on_the_monotonic_clock() -> None:
    host = Host()
    clock = host.clock()
    came_ns, stamp = host.now_ns, host.stamp()
    host.now_ns += 40 * MS
    at_ns = host.believes(clock, stamp)
    assert at_ns is not None
    assert abs(at_ns - came_ns) <= 2 * host.look_ns
    assert clock.jumps == 0


@pytest.mark.parametrize(("age_ns", "believed"), [(0, True), (59 * S, True), (61 * S, False), (-2 * MS, False)])
def test_only_a_fresh_stamp_of_the_past_is_believed(age_ns: int, believed: bool) -> None:
    host = Host()
    clock = host.clock()
    assert (host.believes(clock, host.stamp() - age_ns) is not None) is believed


def test_a_stamp_is_never_after_its_read() -> None:
    host = Host()
    clock = host.clock()
    now_ns = host.monotonic()
    assert clock.believed(host.stamp() + host.look_ns, now_ns) == now_ns


@pytest.mark.parametrize("jump_ns", [2 * MS, -2 * MS, 3600 * S, -3600 * S])
def test_a_jump_of_the_wall_clock_is_counted_once_and_what_came_before_it_is_not_believed(jump_ns: int) -> None:
    host = Host()
    clock = host.clock()
    before = host.stamp()
    host.now_ns += 20 * MS
    host.ahead_ns += jump_ns
    assert host.believes(clock, before) is None
    host.now_ns += MS
    assert host.believes(clock, before) is None
    assert clock.jumps == 1
    host.now_ns += 61 * S
    came_ns, after = host.now_ns, host.stamp()
    at_ns = host.believes(clock, after)
    assert at_ns is not None
    assert abs(at_ns - came_ns) <= 3 * host.look_ns
    assert clock.jumps == 1


def test_stamps_are_believed_again_right_after_a_jump_forwards() -> None:
    host = Host()
    clock = host.clock()
    host.ahead_ns += 5 * S
    assert host.believes(clock, host.stamp()) is None
    host.now_ns += MS
    assert host.believes(clock, host.stamp()) is not None


def test_bytes_that_waited_through_a_jump_backwards_are_not_told_as_new() -> None:
    host = Host()
    clock = host.clock()
    waiting = host.stamp()
    host.now_ns += MS
    host.ahead_ns -= 10 * MS
    assert host.believes(clock, host.stamp()) is None
    host.now_ns += 30 * MS
    assert host.believes(clock, waiting) is None
    assert host.believes(clock, host.stamp()) is not None


def test_a_process_held_up_between_two_looks_is_no_jump() -> None:
    host = Host()
    clock = host.clock()
    stamp, read_ns = host.stamp(), host.monotonic()
    host.now_ns += 50 * MS
    assert clock.believed(stamp, read_ns) is not None
    host.look_ns = 3 * MS  # so busy that no measurement is tight
    assert host.believes(clock, host.stamp()) is not None
    assert clock.jumps == 0


def test_a_small_step_is_followed_within_a_second_or_so_and_is_no_jump() -> None:
    host = Host()
    clock = host.clock()
    host.ahead_ns += JUMP_NS // 2
    host.now_ns += 2 * S
    came_ns, stamp = host.now_ns, host.stamp()
    at_ns = host.believes(clock, stamp)
    assert at_ns is not None
    assert abs(at_ns - came_ns) <= 3 * host.look_ns
    assert clock.jumps == 0


jumps = st.one_of(st.integers(-20 * MS, 20 * MS), st.integers(-100 * S, 100 * S))
steps = st.lists(st.tuples(st.integers(0, 3 * S), jumps, st.booleans()), max_size=8)


@given(steps)
def test_a_believed_stamp_is_true_whatever_jumps(steps: list[tuple[int, int, bool]]) -> None:
    host = Host()
    clock = host.clock()
    waiting: list[tuple[int, int]] = []
    for passed_ns, jump_ns, read in steps:
        waiting.append((host.now_ns, host.stamp()))
        host.now_ns += passed_ns
        host.ahead_ns += jump_ns
        waiting.append((host.now_ns, host.stamp()))
        taken = waiting if read else waiting[-1:]  # something is read between two jumps
        for came_ns, stamp in taken:
            at_ns = host.believes(clock, stamp)
            # A step below a jump may go unseen until the next one, which then hides as much.
            assert at_ns is None or abs(at_ns - came_ns) <= 2 * JUMP_NS + 10 * host.look_ns
        waiting = [] if read else waiting[:-1]


def test_only_the_kernels_own_stamp_is_read_from_a_message() -> None:
    host = Host()
    clock = host.clock()
    came_ns = host.now_ns
    stamp = struct.pack("@ll", *divmod(host.stamp(), S))
    told = (socket.SOL_SOCKET, SO_TIMESTAMPNS, stamp)
    at_ns = clock.carried([(socket.SOL_SOCKET, SO_TIMESTAMPNS + 1, stamp), told], host.monotonic())
    assert at_ns is not None
    assert abs(at_ns - came_ns) <= 2 * host.look_ns
    assert clock.carried([(socket.SOL_SOCKET, SO_TIMESTAMPNS, stamp[:7])], host.monotonic()) is None
    assert clock.carried([], host.monotonic()) is None


def test_a_kernel_that_refuses_the_option_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_clock, "SO_TIMESTAMPNS", 0x7FFF)
    with socket.socket() as sock:
        assert ask_for_stamps(sock) is False
