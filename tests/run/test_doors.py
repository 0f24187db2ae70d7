"""Control calls: straight to this host, by a library elsewhere; both say the same of what comes back."""

import socket
from contextlib import AbstractAsyncContextManager

import anyio
import pytest

from deploytui.errors import EngineError
from deploytui.run import doors
from deploytui.run.doors import Door, ask_one, door, get_json, on_this_host, reached, served_models, status
from deploytui.run.remote import remote_door
from tests.load.server import CLOSE, HANG, Asked, Script, Server, Step, serving

JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


def answer(body: bytes) -> list[Step]:
    return [JSON % (len(body), body)]


def by_library(base_url: str, headers: dict[str, str]) -> AbstractAsyncContextManager[Door]:
    return remote_door(base_url, headers)


@pytest.fixture(params=[door, by_library], ids=["direct", "library"])
def opened(request: pytest.FixtureRequest) -> object:
    return request.param


def call(opened: object, script: Script, act: object, path: str = "") -> tuple[object, Server]:
    """What an act on a door gives, and the server it talked to."""

    async def calling(server: Server) -> object:
        async with opened(server.url + path, {"Authorization": "Bearer k"}) as calls:  # type: ignore[operator]
            return await act(calls)  # type: ignore[operator]

    with serving(script) as server:
        return anyio.run(calling, server), server


def test_a_post_says_its_body_and_headers_under_the_urls_path(opened: object) -> None:
    def script(asked: Asked) -> list[Step]:
        return answer(b'{"usage": {"prompt_tokens": 7}}')

    async def act(calls: Door) -> object:
        return await ask_one(calls, "v1/completions", {"prompt": "hi"}, 10)

    found, server = call(opened, script, act, "/prefix/")
    assert found == {"usage": {"prompt_tokens": 7}}
    (asked,) = server.asked
    assert asked.target == "/prefix/v1/completions"
    assert asked.body == {"prompt": "hi"}
    assert asked.headers["authorization"] == "Bearer k"


def test_a_refusal_carries_the_servers_words(opened: object) -> None:
    def script(asked: Asked) -> list[Step]:
        return [b"HTTP/1.1 401 No\r\nContent-Length: 7\r\n\r\nno key!"]

    async def act(calls: Door) -> object:
        with pytest.raises(EngineError, match="401") as caught:
            await ask_one(calls, "v1/completions", {}, 10)
        return caught.value

    error, _ = call(opened, script, act)
    assert isinstance(error, EngineError)
    assert (error.why, error.fix) == ("no key!", doors.NO_ENTRY)


@pytest.mark.parametrize(
    "steps",
    [[CLOSE], [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", CLOSE], [b"SMTP ready\r\n\r\n", CLOSE], [HANG]],
    ids=["closed", "cut", "other-protocol", "silent"],
)
def test_what_is_no_answer_is_said_in_words_and_never_raised_as_it_is(opened: object, steps: list[Step]) -> None:
    async def act(calls: Door) -> object:
        with pytest.raises(EngineError, match="did not answer"):
            await ask_one(calls, "v1/completions", {}, 0.5)
        return None

    call(opened, lambda asked: steps, act)


def test_nobody_there_is_a_text(opened: object) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"

    async def asking() -> tuple[object, ...]:
        async with opened(url, {}) as calls:  # type: ignore[operator]
            return await reached(calls, "health"), await status(calls, "health"), await served_models(calls)

    said, code, models = anyio.run(asking)
    assert isinstance(said, str)
    assert said
    assert (code, models) == (None, None)


def test_a_host_elsewhere_is_called_by_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [on_this_host(url) for url in ("http://127.0.0.1:1", "http://localhost", "http://[::1]:1/v1")] == [True] * 3
    assert not on_this_host("http://10.1.2.3")
    monkeypatch.setattr(doors, "on_this_host", lambda url: False)

    async def kind() -> str:
        async with door("http://127.0.0.1:1", {}) as calls:
            return type(calls).__name__

    assert anyio.run(kind) == "RemoteDoor"


def test_a_chunked_answer_is_whole(opened: object) -> None:
    body = b'4\r\n{"a"\r\n5\r\n: [1]\r\n1\r\n}\r\n0\r\n\r\n'

    async def act(calls: Door) -> object:
        return await get_json(calls, "x")

    found, _ = call(opened, lambda asked: [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body], act)
    assert found == {"a": [1]}
