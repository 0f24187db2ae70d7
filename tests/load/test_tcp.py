"""A plain TCP connection: ends, breaks, large messages, on the worker's loop and on asyncio's own."""

import asyncio
import contextlib
import functools
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine

import pytest

from deploytui.load.client import connect, resolve
from deploytui.load.loop import new_loop
from deploytui.load.tcp import TcpWire
from tests.load.tcp_pairs import Tape, limited, taped, wired

Run = Callable[[Callable[[], Coroutine[None, None, None]]], None]


def is_quiet(wire: TcpWire) -> bool:
    return wire.quiet


@pytest.fixture(params=[new_loop, asyncio.new_event_loop], ids=["ours", "plain"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs on each loop that a worker may have."""
    return functools.partial(limited, loop=request.param)


def test_a_half_closed_connection_gives_what_came_and_then_its_end(run: Run) -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            tape = taped(wire)
            far.sendall(b"last words")
            far.shutdown(socket.SHUT_WR)
            await tape.end()
            assert (tape.data, tape.broken) == (b"last words", None)
            assert not wire.quiet
            wire.ask(Tape(), b"still heard")
            assert far.recv(100) == b"still heard"

    run(reading)


def test_a_reset_gives_what_came_and_is_told(run: Run) -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            tape = taped(wire)
            far.sendall(b"some")
            await tape.until(4)
            far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            far.close()
            await tape.end()
            assert tape.broken is not None
            assert "reset" in tape.broken
            assert not wire.quiet

    run(reading)


def test_the_answer_of_a_server_that_hung_up_on_the_request_is_not_lost(run: Run) -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            wire.ask(Tape(), b"begin")
            far.sendall(b"too large")
            far.close()  # with unread bytes: a reset
            tape = taped(wire, b"the rest")
            await tape.end()
            assert tape.data == b"too large"

    run(reading)


def test_a_request_larger_than_the_kernel_takes_at_once_arrives_whole(run: Run) -> None:
    request = bytes(range(256)) * (32 << 10)
    received = bytearray()

    def take(far: socket.socket) -> None:
        while len(received) < len(request):
            received.extend(far.recv(1 << 16))
        far.sendall(b"thanks")

    async def sending() -> None:
        with wired() as (wire, far):
            begin_ns = time.monotonic_ns()
            tape = taped(wire, request)
            assert begin_ns <= tape.sent_ns <= time.monotonic_ns()
            assert not is_quiet(wire)
            server = threading.Thread(target=take, args=(far,))
            server.start()
            await tape.until(6)
            assert tape.data == b"thanks"
            assert is_quiet(wire)
            far.sendall(b"and again")
            await tape.until(15)
            server.join()

    run(sending)
    assert bytes(received) == request


def test_a_server_that_breaks_off_while_a_request_is_sent_ends_it(run: Run) -> None:
    async def sending() -> None:
        with wired() as (wire, far):
            tape = taped(wire, bytes(32 << 20))
            far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            far.close()
            await tape.end()
            assert tape.broken is not None
            assert not wire.quiet

    run(sending)


def test_a_large_response_comes_whole_and_in_order(run: Run) -> None:
    response = bytes(range(251)) * (32 << 10)

    async def reading() -> None:
        with wired() as (wire, far):
            tape = taped(wire)
            server = threading.Thread(target=far.sendall, args=(response,))
            server.start()
            reads = await tape.until(len(response))
            server.join()
        assert tape.data == response
        stamps = [read.at_ns for read in reads]
        assert stamps == sorted(stamps)

    run(reading)


def test_a_connection_on_which_something_unasked_came_is_not_quiet(run: Run) -> None:
    async def reading() -> None:
        with wired() as (wire, far), wired() as (other, later):
            assert wire.quiet
            far.sendall(b"hello?")
            tape = taped(other)
            later.sendall(b"x")
            await tape.until(1)  # what was sent before has been read, too
            assert not wire.quiet

    run(reading)


def test_a_closed_connection_may_be_closed_again(run: Run) -> None:
    async def closing() -> None:
        with wired() as (wire, far):
            tape = taped(wire)
            wire.close()
            wire.close()
            assert far.recv(10) == b""
            assert not tape.over

    run(closing)


def test_news_waits_for_the_end(run: Run) -> None:
    async def waiting() -> None:
        with wired() as (wire, far):
            tape = taped(wire)
            news = asyncio.ensure_future(wire.news())
            far.sendall(b"more")
            await tape.until(4)
            assert not news.done()
            far.close()
            await news
            assert tape.over

    run(waiting)


def test_a_dial_given_up_leaves_no_socket_behind(run: Run) -> None:
    async def dialling() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            target = resolve(f"http://127.0.0.1:{full.getsockname()[1]}")
            held = []
            with contextlib.suppress(TimeoutError):
                while True:
                    async with asyncio.timeout(0.2):
                        held.append(await connect(target))
            for wire in held:
                wire.close()

    run(dialling)
