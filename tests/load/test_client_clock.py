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
from deploytui.load.answer import Answer
from deploytui.load.client import connect, resolve
from deploytui.load.exchange import User
from deploytui.load.kernel_clock import KernelClock, stamping
from deploytui.load.loop import READ_BYTES, new_loop
from deploytui.load.meter import Meter
from deploytui.load.tcp import TcpWire
from deploytui.load.tls import tls_context
from deploytui.load.wire import clock_of
from tests.load.server import TLS, serving, tokens
from tests.load.tcp_pairs import Read, clock_here, limited, stamps_come, taped, wired
from tests.load.test_exchange import ask, question

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
            tape = taped(wire)
            for count in range(1, 7):
                read = (await tape.until(count))[-1]
                user_ns.append(time.monotonic_ns())
                kernel_ns.append(read.at_ns)
                assert (read.data, read.clock) == (b"x", "kernel")
            loops[-1].cancel()
            server.join()

    limited(reading, loop=new_loop)
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
            tape = taped(wire)
            far.sendall(b"first")
            await tape.until(5)
            last_ns = send_apart(far, b"a" * size, b"b")
            read_ns = time.monotonic_ns()
            reads = (await tape.until(size + 6))[1:]
            assert last_ns - 100 * US <= reads[-1].at_ns < read_ns
            assert {read.clock for read in reads} == {"kernel"}

    limited(reading, loop=new_loop)


def test_a_socket_that_takes_the_option_and_never_stamps_is_stamped_here() -> None:
    async def reading() -> None:
        near, far = socket.socketpair()
        with near, far:
            near.setblocking(False)
            wire = TcpWire(near, KernelClock(), Meter())
            before_ns = time.monotonic_ns()
            tape = taped(wire)
            far.sendall(b"hello")
            read = (await tape.until(5))[-1]
            assert (read.data, read.clock) == (b"hello", "user")
            assert before_ns <= read.at_ns <= time.monotonic_ns()
            wire.close()

    limited(reading, loop=new_loop)


def test_a_kernel_that_refuses_to_stamp_leaves_it_to_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_clock, "SO_TIMESTAMPNS", 0x7FFF)
    answers, _ = ask(lambda asked: tokens(2), 2)
    assert [answer.clocks for answer in answers] == [{"user"}] * 2
    assert all(answer.record().ok for answer in answers)


def test_tls_keeps_the_stamps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "cert.pem"))
    tls_context.cache_clear()
    try:
        answers, server = ask(lambda asked: tokens(2), 3, tls=True)
    finally:
        tls_context.cache_clear()
    assert server.connections == 1
    assert [answer.clocks for answer in answers] == [{clock_here()}] * 3
    assert all(answer.record().ok for answer in answers)


@stamped
def test_a_connection_whose_first_stamp_is_out_of_date_never_counts() -> None:
    far_ahead = [0]

    def wall() -> int:
        return time.time_ns() + far_ahead[0]

    async def reading() -> None:
        far_ahead[0] = 120 * 1000 * MS
        with wired(KernelClock(wall=wall)) as (wire, far):
            tape = taped(wire)
            for count, data in ((3, b"one"), (6, b"two")):
                far.sendall(data)
                read = (await tape.until(count))[-1]
                assert (read.data, read.clock) == (data, "user")
                far_ahead[0] = 0

    limited(reading, loop=new_loop)


@stamped
def test_reads_around_a_jump_of_the_wall_clock_are_stamped_here_and_stay_in_order() -> None:
    jumped = [0]
    clock = KernelClock(wall=lambda: time.time_ns() + jumped[0])
    reads: list[Read] = []

    async def reading() -> None:
        with wired(clock) as (wire, far):
            tape = taped(wire)
            for count, jump in enumerate((0, 0, 30 * MS, 0, 0), 1):
                jumped[0] = jump
                far.sendall(b"x")
                reads.append((await tape.until(count))[-1])
                await asyncio.sleep(0.002)

    limited(reading, loop=new_loop)
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
    async def asking(url: str) -> list[Answer]:
        target = resolve(url)
        dial = functools.partial(connect, target, KernelClock(), Meter())
        users = [User(k, dial, timeout_s=10) for k in range(100)]
        answers = await asyncio.gather(*(user.ask(question(user.number)) for user in users))
        for user in users:
            user.leave()
        return answers

    with serving(lambda asked: tokens(1)) as server:
        answers = asyncio.run(asking(server.url))
        assert server.connections == 100
    assert {answer.clock for answer in answers} == {clock_here()}
    assert all(answer.sent_ns <= answer.stamps[0] <= time.monotonic_ns() for answer in answers)
