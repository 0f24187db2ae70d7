"""One user on a real connection: what is kept, what is tried again, what fails and how."""

import asyncio
import functools
import time
from collections.abc import Callable

import pytest

from deploytui.load.answer import Answer
from deploytui.load.client import connect, resolve
from deploytui.load.exchange import User
from deploytui.load.loop import new_loop
from deploytui.load.render import Request
from deploytui.load.tls import tls_context
from deploytui.load.trouble import LoadError
from deploytui.load.wire import Connection
from tests.load.replay import DONE, delta, event
from tests.load.server import CLOSE, END, HANG, HEAD, RESET, TLS, Asked, Script, Server, Step, chunk, serving, tokens
from tests.load.tcp_pairs import settled


def question(number: int) -> Request:
    """A request by its id, as bytes."""
    body = b'{"messages": [{"role": "user", "content": "hi"}], "stream": true}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: %d\r\nContent-Length: %d\r\n\r\n"
    return Request(number, head % (number, len(body)) + body)


def is_closed(wire: Connection) -> bool:
    """Whether the server's close has arrived."""
    return not wire.quiet


def ask(script: Script, count: int = 1, *, timeout_s: float = 10.0, tls: bool = False) -> tuple[list[Answer], Server]:
    """The answers of one user that asks so many times."""

    async def asking(server: Server) -> list[Answer]:
        target = resolve(server.url)
        user = User(0, functools.partial(connect, target), timeout_s=timeout_s)
        answers = [await user.ask(question(k)) for k in range(count)]
        user.leave()
        return answers

    with serving(script, tls=tls) as server, asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(asking(server)), server


def test_a_connection_is_kept_between_requests_and_its_setup_is_a_number_of_its_own() -> None:
    answers, server = ask(lambda asked: tokens(3), 3)
    records = [answer.record() for answer in answers]
    assert [record.ok for record in records] == [True] * 3
    assert server.connections == 1
    assert records[0].connect_ns is not None
    assert [record.connect_ns for record in records[1:]] == [None, None]
    assert all(record.flags == () for record in records)


def test_the_clock_starts_when_the_connection_stands() -> None:
    begin = time.monotonic_ns()
    (answer,), _ = ask(lambda asked: tokens(2, gap_s=0.02))
    record = answer.record()
    assert record.connect_ns is not None
    assert begin + record.connect_ns < record.sent_ns
    assert list(answer.stamps) == sorted(answer.stamps)
    assert answer.stamps[1] - answer.stamps[0] > 5_000_000
    assert record.first_token_ns is not None
    assert record.sent_ns < record.first_token_ns <= record.end_ns


def drops_the_second(answered: Callable[[Asked], list[Step]]) -> Script:
    """The second request over a connection gets what `answered` says, each other a whole answer."""
    seen: list[int] = []

    def script(asked: Asked) -> list[Step]:
        seen.append(asked.connection)
        return answered(asked) if seen.count(asked.connection) == 2 else list(tokens(2))

    return script


@pytest.mark.parametrize("how", [CLOSE, RESET])
def test_a_kept_connection_that_the_server_dropped_is_replaced_and_the_clock_restarted(how: str) -> None:
    answers, server = ask(drops_the_second(lambda asked: [0.05, how]), 2)
    first, second = (answer.record() for answer in answers)
    assert first.ok
    assert second.ok
    assert first.flags == ()
    assert second.flags == ("reconnected",)
    assert server.connections == 2
    assert [asked.id for asked in server.asked] == [0, 1, 1]
    assert second.connect_ns is not None
    assert second.sent_ns > first.end_ns + 40_000_000


def test_a_kept_connection_closed_before_the_next_request_is_replaced() -> None:
    def script(asked: Asked) -> list[Step]:
        return [*tokens(2), CLOSE]

    async def asking(server: Server) -> list[Answer]:
        target = resolve(server.url)
        requests = [question(k) for k in range(3)]
        user = User(0, functools.partial(connect, target), timeout_s=10)
        answers = []
        for request in requests:
            answers.append(await user.ask(request))
            assert user._kept is not None
            await settled(functools.partial(is_closed, user._kept))
        user.leave()
        return answers

    with serving(script) as server:
        records = [answer.record() for answer in asyncio.run(asking(server))]
    assert [record.ok for record in records] == [True] * 3
    assert [record.flags for record in records] == [(), ("reconnected",), ("reconnected",)]
    assert len(server.asked) == 3


def test_an_announced_close_is_no_reconnect() -> None:
    head = HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    body = chunk(event(data=delta("stop", content="a")) + DONE) + END
    answers, server = ask(lambda asked: [head + body, CLOSE], 2)
    assert [answer.record().flags for answer in answers] == [(), ()]
    assert server.connections == 2


@pytest.mark.parametrize("how", [CLOSE, RESET])
def test_nothing_is_tried_again_once_a_byte_of_the_reply_came(how: str) -> None:
    begun = HEAD + chunk(event(data=delta(content="a")))
    answers, server = ask(drops_the_second(lambda asked: [begun, 0.05, how]), 2)
    record = answers[1].record()
    assert record.error_kind == ("truncated" if how == CLOSE else "reset")
    assert record.chunks == 1
    assert len(server.asked) == 2


def test_a_fresh_connection_closed_without_an_answer_is_not_tried_again() -> None:
    (answer,), server = ask(lambda asked: [CLOSE])
    record = answer.record()
    assert (record.ok, record.error_kind, record.http_status) == (False, "reset", None)
    assert len(server.asked) == 1


def test_an_answer_that_takes_too_long_is_a_timeout_that_keeps_its_tokens() -> None:
    begun = HEAD + chunk(event(data=delta(content="a")))
    (answer,), _ = ask(lambda asked: [begun, HANG], timeout_s=0.2)
    record = answer.record()
    assert (record.ok, record.error_kind, record.chunks) == (False, "timeout", 1)
    assert record.end_ns - record.sent_ns >= 200_000_000


def test_a_server_that_never_answers_is_a_timeout() -> None:
    (answer,), _ = ask(lambda asked: [HANG], timeout_s=0.2)
    assert answer.record().error_kind == "timeout"


def test_a_server_that_holds_the_connection_behind_done_costs_no_latency() -> None:
    whole = HEAD + chunk(event(data=delta("stop", content="a")) + DONE)
    answers, server = ask(lambda asked: [whole, HANG] if asked.id == 0 else tokens(1), 2)
    first, second = (answer.record() for answer in answers)
    assert first.ok
    assert first.flags == ("unterminated",)
    assert first.end_ns == first.last_token_ns
    assert second.ok
    assert server.connections == 2


def test_a_closed_port_is_a_failure_to_connect() -> None:
    with serving(lambda asked: []) as server:
        url = server.url

    async def asking() -> Answer:
        target = resolve(url)
        return await User(0, functools.partial(connect, target), timeout_s=5).ask(question(0))

    record = asyncio.run(asking()).record()
    assert (record.ok, record.error_kind) == (False, "connect")
    assert "refused" in (record.error or "").lower() or "Connect call failed" in (record.error or "")
    assert record.sent_ns <= record.end_ns


def test_tls_is_spoken_and_certificates_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    tls_context.cache_clear()
    (refused,), _ = ask(lambda asked: tokens(2), tls=True)
    assert refused.record().error_kind == "connect"
    assert "certificate" in (refused.record().error or "").lower()
    tls_context.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "cert.pem"))
    answers, server = ask(lambda asked: tokens(2), 2, tls=True)
    tls_context.cache_clear()
    assert [answer.record().ok for answer in answers] == [True, True]
    assert server.connections == 1


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", "http://x:port", "http://no such host/"])
def test_a_base_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(LoadError):
        resolve(url)
