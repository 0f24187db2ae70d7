"""Control calls to an engine on this host: plain HTTP over our own connections, so that nothing heavy is imported."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from deploytui.load.client import Target, connect, resolve
from deploytui.load.http1 import ResponseReader

BODY_CAP = 64 << 20
"""Longest answer to a control call [bytes]."""


class DirectDoor:
    """Calls one engine without a proxy, each call on a fresh connection."""

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        self.base_url = base_url.rstrip("/")
        self._headers = headers

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Status and content of the answer; raises OSError."""
        target = resolve(self.base_url)
        wire = await connect(target)
        try:
            answer = _Body()
            wire.ask(answer, self._request(target, method, path, body))
            while not answer.over:
                await wire.news()
        finally:
            wire.close()
        return answer.taken()

    def _request(self, target: Target, method: str, path: str, body: dict[str, Any] | None) -> bytes:
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {
            "Host": target.authority,
            "Connection": "close",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            **self._headers,
        }
        prefix = urlsplit(self.base_url).path.rstrip("/")
        lines = [
            f"{method} {prefix}/{path.lstrip('/')} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join((*lines, "", "")).encode("latin-1") + content


class _Body:
    """Takes in one response as a whole."""

    def __init__(self) -> None:
        self.sent_ns = 0
        self.over = False
        self.done_ns: int | None = None
        self.late_merged = 0
        self._http = ResponseReader()
        self._content = bytearray()
        self._broken: str | None = None

    def read(self, data: bytes, at_ns: int, kernel: bool = False, /) -> int:
        self._content += self._http.feed(data)
        if self._http.bad is not None or len(self._content) > BODY_CAP:
            self.fail("", self._http.bad or "the answer has no end", at_ns)
        self.over = self.over or self._http.over
        return 0

    def eof(self, at_ns: int) -> None:
        self.over = True
        if self._http.eof():
            self._broken = self._broken or "the connection was closed before the answer was whole"

    def fail(self, kind: str, text: str, at_ns: int) -> None:
        self._broken, self.over = text, True

    def taken(self) -> tuple[int, bytes]:
        """Status and content; raises ConnectionError where the answer is not whole."""
        if self._broken is not None or self._http.head is None:
            raise ConnectionError(self._broken or "there was no answer")
        return self._http.head.status, bytes(self._content)
