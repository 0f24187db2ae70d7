"""The worker's event loop: as asyncio's own for everything, and short for the sockets it watches."""

import asyncio
import contextlib
import functools
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from deploytui.load.backlog import Received
from deploytui.load.loop import HotLoop, has_slept, new_loop, unwatch, watch


@contextlib.contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield near, far


class Reading:
    """Reads a socket and remembers what came."""

    def __init__(self, sock: socket.socket) -> None:
        self.came: list[bytes] = []
        self.earliest: list[int | None] = []
        self.broken: OSError | None = None
        self.recvmsg: Callable[[int, int], Received] = sock.recvmsg

    def look_at(self, received: Received, at_ns: int, since_ns: int | None) -> None:
        self.came.append(received[0])
        self.earliest.append(since_ns)

    def broke(self, error: OSError) -> None:
        self.broken = error


class Clock:
    """A monotonic clock on which every reading takes a microsecond, and all else nothing but what is added."""

    def __init__(self) -> None:
        self.now_ns = 1_000_000_000

    def __call__(self) -> int:
        self.now_ns += 1_000
        return self.now_ns


def send_both(first: socket.socket, second: socket.socket, data: bytes) -> None:
    first.send(data)
    second.send(data)


async def polled(sock: socket.socket, act: Callable[[], object]) -> None:
    """Act, and wait until the loop has polled what came of it; `sock` gets some bytes by it."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[bytes] = loop.create_future()

    def tell() -> None:
        if not told.done():
            told.set_result(sock.recv(100))

    loop.add_reader(sock, tell)
    act()
    await asyncio.wait_for(told, 10)
    loop.remove_reader(sock)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        yield runner


def test_a_watched_socket_is_read_until_it_is_unwatched(runner: asyncio.Runner) -> None:
    async def reading() -> None:
        loop = asyncio.get_running_loop()
        with pair() as (near, far), pair() as (other, barrier):
            reader = Reading(near)
            watch(near, reader)
            for word in (b"a", b"b"):
                await polled(other, functools.partial(send_both, far, barrier, word))
            assert reader.came == [b"a", b"b"]
            assert all(since is None or since <= time.monotonic_ns() for since in reader.earliest)
            unwatch(loop, near)
            unwatch(loop, near)
            await polled(other, functools.partial(send_both, far, barrier, b"c"))
            assert reader.came == [b"a", b"b"]
            assert near.recv(10) == b"c"

    runner.run(reading())


@pytest.mark.parametrize(
    ("took_us", "ready", "slept"), [(3, 1, False), (80, 1, True), (400, 1000, False), (5000, 3, True), (60, 0, True)]
)
def test_a_poll_that_is_long_because_it_tells_of_much_has_not_slept(took_us: int, ready: int, slept: bool) -> None:
    assert has_slept(took_us * 1000, ready) is slept


def test_of_sockets_that_waited_through_a_busy_time_none_is_taken_for_new(
    runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock of the test's own: a poll from which the processor was taken looks like one that slept."""
    clock = Clock()
    monkeypatch.setattr("deploytui.load.loop._now_ns", clock)

    async def reading() -> None:
        with contextlib.ExitStack() as stack:
            pairs = [stack.enter_context(pair()) for _ in range(60)]
            readers = [Reading(near) for near, _ in pairs]
            for reader, (near, _) in zip(readers, pairs, strict=True):
                watch(near, reader)
            other, barrier = stack.enter_context(pair())
            await polled(other, functools.partial(barrier.send, b"x"))
            busy_ns = clock.now_ns
            for _, far in pairs:
                far.send(b"x")
            clock.now_ns += 10_000_000
            await polled(other, functools.partial(barrier.send, b"x"))
            earliest = [since for reader in readers for since in reader.earliest]
            assert len(earliest) == 60
            assert all(since is None or since <= busy_ns + 1_000_000 for since in earliest)

    runner.run(reading())


def test_what_asyncio_does_with_sockets_still_works(runner: asyncio.Runner) -> None:
    async def talking() -> bytes:
        server = await asyncio.start_server(_echo, "127.0.0.1", 0)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"x" * (4 << 20))
            writer.write_eof()
            await writer.drain()
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer

    async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        await writer.drain()
        writer.close()

    assert runner.run(talking()) == b"x" * (4 << 20)


def test_threads_children_and_signals_reach_the_loop(runner: asyncio.Runner) -> None:
    async def waiting() -> None:
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(told.set_result, 1))
        thread.start()
        assert await asyncio.wait_for(told, 10) == 1
        thread.join()
        assert await asyncio.to_thread(sum, [1, 2]) == 3

    runner.run(waiting())


def test_a_timer_is_never_early_and_the_loop_does_not_lose_it(runner: asyncio.Runner) -> None:
    async def sleeping() -> None:
        loop = asyncio.get_running_loop()
        for delay in (0.0, 0.0003, 0.0015, 0.01):
            begun = loop.time()
            await asyncio.sleep(delay)
            assert loop.time() - begun >= delay - 1e-6

    runner.run(sleeping())


def test_a_descriptor_is_registered_once(runner: asyncio.Runner) -> None:
    async def registering() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HotLoop)
        with pair() as (near, _):
            loop.hot.register(near, 1, None)
            with pytest.raises(KeyError):
                loop.hot.register(near, 1, None)
            assert loop.hot.get_key(near).fd == near.fileno()
            near.close()
            with pytest.raises(ValueError, match="no descriptor"):
                loop.hot.get_key(near)

    if hasattr(__import__("select"), "epoll"):
        runner.run(registering())
