"""Requests through aiohttp: slower, stamped by this process, but it knows proxies and every odd gateway."""

import asyncio
import time
from types import SimpleNamespace

import aiohttp

from deploytui.load.answer import Answer
from deploytui.load.client import Target
from deploytui.load.exchange import User
from deploytui.load.head import Head
from deploytui.load.http1 import LINE_CAP
from deploytui.load.render import Request
from deploytui.load.trouble import LoadError
from deploytui.load.wire import Connection

_ITS_OWN = frozenset({"host", "content-length"})
"""Headers that the library writes itself."""
_NEVER_ADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class Library:
    """The one session of a load; needs a running event loop, and to be closed in it."""

    def __init__(self, target: Target) -> None:
        self._session = aiohttp.ClientSession(
            base_url=f"{'https' if target.tls else 'http'}://{target.authority}",
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=True,
            auto_decompress=False,
            trace_configs=[_tracing()],
            max_line_size=LINE_CAP,
            max_field_size=LINE_CAP,
        )

    async def fetch(self, request: Request, answer: Answer) -> None:
        """Fold the whole answer to a request; raises aiohttp's errors."""
        path, headers, body = _parts(request.content)
        asked = self._session.post(
            path,
            data=body,
            headers=headers,
            skip_auto_headers=_NEVER_ADDED,
            allow_redirects=False,
            trace_request_ctx=answer,
        )
        async with asked as response:
            answer.begin(_head(response))
            async for data in response.content.iter_any():
                answer.read(data, time.monotonic_ns())
        answer.eof(time.monotonic_ns())

    async def close(self) -> None:
        """Let go of all connections."""
        await self._session.close()


class LibraryUser(User):
    """One simulated user whose requests go by the library, through the proxies that the environment names."""

    def __init__(self, number: int, library: Library, *, timeout_s: float, keep_text: bool = False) -> None:
        super().__init__(number, _no_connection, timeout_s=timeout_s, keep_text=keep_text)
        self._library = library

    async def connect(self) -> None:
        """Nothing: the library opens connections as it needs them."""

    async def ask(self, request: Request) -> Answer:
        """Send a request and take in its whole answer; what goes wrong is in the answer, not raised."""
        answer = self._answer(request, reconnected=False)
        answer.sent_ns = time.monotonic_ns()
        self.under_way = answer
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._library.fetch(request, answer)
        except (aiohttp.ClientError, OSError) as error:  # running out of time is one, too
            answer.fail(*_failure(error, self._timeout_s), time.monotonic_ns())
        finally:
            self.under_way = None
        return answer


async def _no_connection() -> Connection:
    raise LoadError("The library opens its own connections.")


def _failure(error: Exception, timeout_s: float) -> tuple[str, str]:
    """Kind and text."""
    said = str(error) or type(error).__name__
    match error:
        case TimeoutError():
            return "timeout", f"the answer was not complete within {timeout_s:g} s"
        case aiohttp.ClientConnectorError() | aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return "connect", said
        case aiohttp.ClientPayloadError():
            return "truncated", f"the connection was closed in the middle of the response: {said}"
        case aiohttp.ClientResponseError():
            return "bad_response", said
        case _:
            return "reset", f"the connection broke: {said}"


def _parts(content: bytes) -> tuple[str, list[tuple[str, str]], bytes]:
    """Path, headers and body of a rendered request."""
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    return first.split(" ")[1], [(name, value) for name, value in pairs if name.lower() not in _ITS_OWN], body


def _head(response: aiohttp.ClientResponse) -> Head:
    headers: dict[str, str] = {}
    for written, value in response.headers.items():
        name = written.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    minor = response.version.minor if response.version else 1
    return Head(status=response.status, minor=minor, headers=headers)


def _tracing() -> aiohttp.TraceConfig:
    """Notes in the answer when its connection stood and when its first bytes left."""
    config = aiohttp.TraceConfig()
    config.on_connection_create_start.append(_connecting)
    config.on_connection_create_end.append(_connected)
    config.on_request_headers_sent.append(_sent)
    return config


async def _connecting(_: aiohttp.ClientSession, about: SimpleNamespace, __: object) -> None:
    about.connecting_ns = time.monotonic_ns()


async def _connected(_: aiohttp.ClientSession, about: SimpleNamespace, __: object) -> None:
    about.trace_request_ctx.connect_ns = time.monotonic_ns() - about.connecting_ns


async def _sent(_: aiohttp.ClientSession, about: SimpleNamespace, __: object) -> None:
    about.trace_request_ctx.sent_ns = time.monotonic_ns()
