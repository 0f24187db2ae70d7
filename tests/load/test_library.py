"""Requests through the library: the same answers by another way, and through the proxy that the environment names."""

import asyncio

import pytest

from deploytui.load.answer import Answer
from deploytui.load.client import resolve
from deploytui.load.library import Library, LibraryUser
from tests.load.server import CLOSE, HANG, HEAD, RESET, Asked, Script, Server, Step, serving, tokens
from tests.load.test_exchange import question

BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\nbusy"


def ask(script: Script, count: int = 1, *, timeout_s: float = 10.0, base_url: str = "") -> tuple[list[Answer], Server]:
    async def asking(url: str) -> list[Answer]:
        library = Library(resolve(url))
        user = LibraryUser(0, library, timeout_s=timeout_s, keep_text=True)
        answers = [await user.ask(question(k)) for k in range(count)]
        await library.close()
        return answers

    with serving(script) as server:
        return asyncio.run(asking(base_url or server.url)), server


def test_answers_are_as_those_of_the_direct_way() -> None:
    answers, server = ask(lambda asked: tokens(3, gap_s=0.005), 3)
    records = [answer.record() for answer in answers]
    assert [(record.ok, record.chunks, record.output_tokens, record.text) for record in records] == [
        (True, 3, 3, "w0 w1 w2 ")
    ] * 3
    assert {record.clock for record in records} == {"user"}
    assert server.connections == 1
    assert records[0].connect_ns is not None
    assert [record.connect_ns for record in records[1:]] == [None, None]
    for answer in answers:
        assert answer.sent_ns <= answer.stamps[0] <= answer.record().end_ns
    assert [asked.id for asked in server.asked] == [0, 1, 2]
    assert server.asked[0].target == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([BUSY], "http_429"),
        ([HEAD, CLOSE], "truncated"),
        ([RESET], "reset"),
        ([CLOSE], "reset"),
        ([HANG], "timeout"),
        ([b"SSH-2.0-x\r\n\r\n", CLOSE], "bad_response"),
    ],
)
def test_what_goes_wrong_has_the_same_kind(steps: list[Step], kind: str) -> None:
    (answer,), _ = ask(lambda asked: steps, timeout_s=1.0)
    record = answer.record()
    assert (record.ok, record.error_kind) == (False, kind)


def test_a_closed_port_is_a_failure_to_connect() -> None:
    (answer,), _ = ask(lambda asked: tokens(1), base_url="http://127.0.0.1:9")
    assert answer.record().error_kind == "connect"


def test_the_environments_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Asked] = []

    def proxy(request: Asked) -> list[Step]:
        asked.append(request)
        return list(tokens(2))

    with serving(proxy) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)

        async def asking() -> Answer:
            library = Library(resolve("http://127.0.0.1:9"))
            answer = await LibraryUser(0, library, timeout_s=10).ask(question(7))
            await library.close()
            return answer

        assert asyncio.run(asking()).record().ok
    assert [request.target for request in asked] == ["http://127.0.0.1:9/v1/chat/completions"]
