"""A loop that is behind goes on reading; what it read is looked at later, in order, and none of it is lost."""

import asyncio
import socket
from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from deploytui.load import backlog
from deploytui.load.backlog import AT_ONCE, LARGE_BYTES, MOST, Backlog, Reader, Received
from deploytui.load.loop import HotLoop, catch_up, new_loop, unwatch, watch

MANY = 10 * MOST
"""So many streams that no poll tells of most of them."""


def nothing(_: int, __: int) -> Received:
    raise BlockingIOError


class Noting:
    """A reader that notes what it was shown."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        self.seen: list[tuple[bytes, int, int | None]] = []
        self.ended = 0
        self.recvmsg: Callable[[int, int], Received] = nothing if sock is None else sock.recvmsg

    def look_at(self, received: Received, at_ns: int, since_ns: int | None) -> None:
        self.seen.append((received[0], at_ns, since_ns))
        self.ended += not received[0]

    def broke(self, error: OSError) -> None:
        raise AssertionError(error)


def reads(reader: Noting, first: int, count: int, size: int = 3) -> list[tuple[Reader, Received, int]]:
    return [(reader, (b"%08d" % k + b"x" * size, [], 0, None), k) for k in range(first, first + count)]


def numbers(reader: Noting) -> list[int]:
    return [int(data[:8]) for data, _, _ in reader.seen]


@given(st.lists(st.integers(0, 3 * AT_ONCE), max_size=12))
def test_reads_are_looked_at_in_order_each_once(polls: Sequence[int]) -> None:
    waiting, reader, first = Backlog(), Noting(), 0
    for since, count in enumerate(polls):
        before = len(reader.seen)
        waiting.look_at(reads(reader, first, count), since, MANY)
        first += count
        assert len(reader.seen) - before <= AT_ONCE or not waiting
        assert bool(waiting) == (len(reader.seen) < first)
    waiting.catch_up()
    assert numbers(reader) == list(range(first))
    assert [at for _, at, _ in reader.seen] == list(range(first))
    assert [since for _, _, since in reader.seen] == [k for k, count in enumerate(polls) for _ in range(count)]


def test_a_full_backlog_makes_room_before_the_next_poll() -> None:
    waiting, reader = Backlog(), Noting()
    waiting.look_at(reads(reader, 0, MOST), 0, MANY)
    waiting.look_at(reads(reader, MOST, 1000), 0, MANY)
    assert len(reader.seen) >= 1000
    assert MOST + 1000 - len(reader.seen) <= MOST


def test_where_most_streams_have_something_none_waits() -> None:
    waiting, reader = Backlog(), Noting()
    waiting.look_at(reads(reader, 0, 2 * AT_ONCE), 0, 4 * AT_ONCE)
    assert waiting
    waiting.look_at(reads(reader, 2 * AT_ONCE, 2 * AT_ONCE + 1), 0, 4 * AT_ONCE)
    assert not waiting
    assert numbers(reader) == list(range(4 * AT_ONCE + 1))


def test_large_reads_do_not_wait() -> None:
    waiting, reader = Backlog(), Noting()
    waiting.look_at(reads(reader, 0, 2 * AT_ONCE, LARGE_BYTES), 0, MANY)
    assert not waiting
    assert len(reader.seen) == 2 * AT_ONCE


def test_how_long_reads_waited_is_told() -> None:
    waiting, reader = Backlog(), Noting()
    waiting.look_at(reads(reader, 0, AT_ONCE), 0, MANY)
    assert waiting.longest_ns == 0
    waiting.look_at(reads(reader, 0, AT_ONCE + 1), 0, MANY)
    assert waiting.longest_ns > 0


def test_streams_that_end_while_the_loop_is_behind_are_read_to_their_ends() -> None:
    """Far more streams than are looked at at once, each with bytes and its end: each is told both, once."""

    async def all_of_them(pairs: list[tuple[socket.socket, socket.socket]]) -> list[Noting]:
        loop = asyncio.get_running_loop()
        readers = []
        for near, far in pairs:
            near.setblocking(False)
            readers.append(Noting(near))
            watch(near, readers[-1])
            far.send(b"word")
            far.close()
        async with asyncio.timeout(30):
            while not all(reader.ended for reader in readers):  # noqa: ASYNC110, the loop's own turns are what is tested
                await asyncio.sleep(0)
        for near, _ in pairs:
            unwatch(loop, near)
            near.close()
        return readers

    pairs = [socket.socketpair() for _ in range(3 * AT_ONCE)]
    with asyncio.Runner(loop_factory=new_loop) as runner:
        readers = runner.run(all_of_them(pairs))
    for reader in readers:
        assert [data for data, _, _ in reader.seen] == [b"word", b""]


def test_catching_up_looks_at_what_waits() -> None:
    async def behind() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        reader = Noting()
        if isinstance(loop, HotLoop):
            loop.hot.backlog.look_at(reads(reader, 0, 3 * backlog.AT_ONCE), 0, MANY)
        before = len(reader.seen)
        catch_up()
        return before, len(reader.seen)

    with asyncio.Runner(loop_factory=HotLoop) as runner:
        assert runner.run(behind()) == (AT_ONCE, 3 * AT_ONCE)
