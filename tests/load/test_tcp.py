"""A plain TCP connection: ends, breaks, large messages, and what is given up half way."""

import asyncio
import contextlib
import socket
import struct
import threading
import time

import pytest

from deploytui.load.client import connect, resolve
from tests.load.tcp_pairs import limited, read_bytes, wired


def test_a_half_closed_connection_gives_what_came_and_then_its_end() -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            far.sendall(b"last words")
            far.shutdown(socket.SHUT_WR)
            assert (await wire.read()).data == b"last words"
            end, again = await wire.read(), await wire.read()
            assert (end.data, again) == (b"", end)
            assert not wire.quiet
            wire.send(b"still heard")
            assert far.recv(100) == b"still heard"

    limited(reading)


def test_a_reset_gives_what_came_and_is_raised() -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            far.sendall(b"some")
            assert (await wire.read()).data == b"some"
            far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            far.close()
            for _ in range(2):
                with pytest.raises(ConnectionResetError):
                    await wire.read()
            assert not wire.quiet

    limited(reading)


def test_the_answer_of_a_server_that_hung_up_on_the_request_is_not_lost() -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            wire.send(b"begin")
            far.sendall(b"too large")
            far.close()  # with unread bytes: a reset
            wire.send(b"the rest")
            assert (await wire.read()).data == b"too large"
            with contextlib.suppress(ConnectionError):
                assert (await wire.read()).data == b""

    limited(reading)


def test_a_request_larger_than_the_kernel_takes_at_once_arrives_whole() -> None:
    request = bytes(range(256)) * (32 << 10)
    received = bytearray()

    def take(far: socket.socket) -> None:
        while len(received) < len(request) + 4:
            received.extend(far.recv(1 << 16))
        far.sendall(b"thanks")

    async def sending() -> None:
        with wired() as (wire, far):
            begin_ns = time.monotonic_ns()
            sent_ns = wire.send(request)
            assert begin_ns <= sent_ns <= time.monotonic_ns()
            wire.send(b"next")
            server = threading.Thread(target=take, args=(far,))
            server.start()
            assert (await wire.read()).data == b"thanks"
            assert wire.quiet
            server.join()

    limited(sending)
    assert bytes(received) == request + b"next"


def test_a_large_response_comes_whole_and_in_order() -> None:
    response = bytes(range(251)) * (32 << 10)

    async def reading() -> None:
        with wired() as (wire, far):
            server = threading.Thread(target=far.sendall, args=(response,))
            server.start()
            reads = await read_bytes(wire, len(response))
            server.join()
        assert b"".join(read.data for read in reads) == response
        stamps = [read.at_ns for read in reads]
        assert stamps == sorted(stamps)

    limited(reading)


def test_a_closed_connection_ends_and_may_be_closed_again() -> None:
    async def closing() -> None:
        with wired() as (wire, far):
            waiting = asyncio.ensure_future(wire.read())
            await asyncio.sleep(0)
            wire.close()
            assert (await waiting).data == b""
            wire.close()
            assert not wire.quiet
            assert far.recv(10) == b""

    limited(closing)


def test_a_read_given_up_loses_nothing() -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await wire.read()
            far.sendall(b"later")
            assert (await wire.read()).data == b"later"

    limited(reading)


def test_a_dial_given_up_leaves_no_socket_behind() -> None:
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

    limited(dialling)
