"""A connection's stamps: the kernel's where it gives them, ours where not, and always said which."""

import asyncio
import functools
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from deploytui.load import kernel_clock
from deploytui.load.client import connect, resolve
from deploytui.load.kernel_clock import KernelClock, ask_for_stamps, stamping
from deploytui.load.tcp import READ_BYTES, TcpWire
from deploytui.load.wire import Read, clock_of
from tests.load.server import serving, tokens
from tests.load.tcp_pairs import clock_here, limited, read_bytes, stamps_come, wired
from tests.load.test_exchange import ask

stamped = pytest.mark.skipif(clock_here() != "kernel", reason="this kernel stamps no TCP")

US = 1_000
MS = 1_000_000
BLOCK_S = 0.05


@pytest.fixture(autouse=True, scope="module")
def kernel_at_work() -> Iterator[None]:
    with stamping():
        assert stamps_come() is (clock_here() == "kernel")
        yield


@stamped
def test_a_busy_event_loop_does_not_move_the_stamps() -> None:
    sent_ns: list[int] = []

    def pace(far: socket.socket) -> None:
        for _ in range(6):  # rarely enough that no two meet in one read
            time.sleep(BLOCK_S * 2.6)
            sent_ns.append(time.monotonic_ns())
            far.sendall(b"x")

    def keep_busy() -> None:
        time.sleep(BLOCK_S)
        loops.append(asyncio.get_running_loop().call_soon(keep_busy))

    loops: list[asyncio.Handle] = []
    kernel_ns: list[int] = []
    user_ns: list[int] = []

    async def reading() -> None:
        with wired() as (wire, far):
            server = threading.Thread(target=pace, args=(far,))
            server.start()
            keep_busy()
            while len(kernel_ns) < 6:
                read = await wire.read()
                user_ns.append(time.monotonic_ns())
                kernel_ns.append(read.at_ns)
                assert (read.data, read.clock) == (b"x", "kernel")
            loops[-1].cancel()
            server.join()

    limited(reading)
    late_kernel = [at - sent for at, sent in zip(kernel_ns, sent_ns, strict=True)]
    late_user = [at - sent for at, sent in zip(user_ns, sent_ns, strict=True)]
    assert min(late_kernel) > -100 * US
    assert max(late_user) > 20 * MS
    assert sum(late_kernel) * 4 < sum(late_user)
    off = [abs((b - a) - (d - c)) for (a, b), (c, d) in zip(pairwise(kernel_ns), pairwise(sent_ns), strict=True)]
    off_user = [abs((b - a) - (d - c)) for (a, b), (c, d) in zip(pairwise(user_ns), pairwise(sent_ns), strict=True)]
    assert sum(off) * 2 < sum(off_user)


def send_apart(far: socket.socket, first: bytes, last: bytes) -> int:
    """Send both while nobody reads; when the last was sent [ns]."""
    far.sendall(first)
    time.sleep(0.03)
    at_ns = time.monotonic_ns()
    far.sendall(last)
    time.sleep(0.03)
    return at_ns


@stamped
@pytest.mark.parametrize("size", [10, READ_BYTES])
def test_what_waited_together_is_stamped_by_its_last_segment(size: int) -> None:
    async def reading() -> None:
        with wired() as (wire, far):
            far.sendall(b"first")
            await read_bytes(wire, 5)
            last_ns = send_apart(far, b"a" * size, b"b")
            read_ns = time.monotonic_ns()
            reads = await read_bytes(wire, size + 1)
            assert last_ns - 100 * US <= reads[-1].at_ns < read_ns
            assert {read.clock for read in reads} == {"kernel"}

    limited(reading)


def test_a_socket_that_takes_the_option_and_never_stamps_is_stamped_here() -> None:
    async def reading() -> None:
        near, far = socket.socketpair()
        with near, far:
            near.setblocking(False)
            wire = TcpWire(near, KernelClock(), stamped=ask_for_stamps(near))
            before_ns = time.monotonic_ns()
            far.sendall(b"hello")
            read = await wire.read()
            assert (read.data, read.clock) == (b"hello", "user")
            assert before_ns <= read.at_ns <= time.monotonic_ns()
            wire.close()

    limited(reading)


def test_a_kernel_that_refuses_to_stamp_leaves_it_to_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_clock, "SO_TIMESTAMPNS", 0x7FFF)
    answers, _ = ask(lambda asked: tokens(2), 2)
    assert [answer.clocks for answer in answers] == [{"user"}] * 2
    assert all(answer.record().ok for answer in answers)


def test_tls_is_stamped_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.load.server import TLS

    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "cert.pem"))
    from deploytui.load.client import _tls_context

    _tls_context.cache_clear()
    try:
        answers, _ = ask(lambda asked: tokens(2), tls=True)
    finally:
        _tls_context.cache_clear()
    assert [answer.clocks for answer in answers] == [{"user"}]


@stamped
def test_a_connection_whose_first_stamp_is_out_of_date_never_counts() -> None:
    far_ahead = [0]

    def wall() -> int:
        return time.time_ns() + far_ahead[0]

    async def reading() -> None:
        far_ahead[0] = 120 * 1000 * MS
        with wired(KernelClock(wall=wall)) as (wire, far):
            for data in (b"one", b"two"):
                far.sendall(data)
                read = await wire.read()
                assert (read.data, read.clock) == (data, "user")
                far_ahead[0] = 0

    limited(reading)


@stamped
def test_reads_around_a_jump_of_the_wall_clock_are_stamped_here_and_stay_in_order() -> None:
    jumped = [0]
    clock = KernelClock(wall=lambda: time.time_ns() + jumped[0])
    reads: list[Read] = []

    async def reading() -> None:
        with wired(clock) as (wire, far):
            for jump in (0, 0, 30 * MS, 0, 0):
                jumped[0] = jump
                far.sendall(b"x")
                reads.append(await wire.read())
                await asyncio.sleep(0.002)

    limited(reading)
    assert [read.clock for read in reads] == ["kernel", "kernel", "user", "user", "user"]
    assert clock.jumps == 2
    stamps = [read.at_ns for read in reads]
    assert stamps == sorted(stamps)
    assert clock_of(read.clock for read in reads) == "mixed"


def test_the_clock_of_many_reads_is_one_word() -> None:
    assert clock_of(["kernel", "kernel"]) == "kernel"
    assert clock_of(["user"]) == "user"
    assert clock_of(["kernel", "user"]) == "mixed"
    assert clock_of([]) == "user"


def test_a_kept_connection_keeps_its_clock() -> None:
    answers, server = ask(lambda asked: tokens(3, gap_s=0.002), 4)
    assert server.connections == 1
    assert [answer.clocks for answer in answers] == [{clock_here()}] * 4
    for answer in answers:
        assert answer.sent_ns <= answer.stamps[0]
        assert list(answer.stamps) == sorted(answer.stamps)


def test_many_connections_share_one_clock() -> None:
    async def asking(url: str) -> list[Read]:
        dial = functools.partial(connect, resolve(url), KernelClock())
        wires = await asyncio.gather(*(dial() for _ in range(100)))
        body = b'{"k":1}'
        head = b"POST / HTTP/1.1\r\nHost: x\r\nX-Request-Id: 1\r\nContent-Length: %d\r\n\r\n" % len(body)
        sent = [wire.send(head + body) for wire in wires]
        reads = await asyncio.gather(*(wire.read() for wire in wires))
        assert all(at_ns <= read.at_ns <= time.monotonic_ns() for at_ns, read in zip(sent, reads, strict=True))
        for wire in wires:
            wire.close()
        return reads

    with serving(lambda asked: tokens(1)) as server:
        reads = asyncio.run(asking(server.url))
        assert server.connections == 100
    assert {read.clock for read in reads} == {clock_here()}
