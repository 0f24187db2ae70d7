"""HTTP/1.1 as the mock engine speaks it: requests in; whole answers and event streams out."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable
from typing import Any, NamedTuple

REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    422: "Unprocessable",
    429: "Too Many Requests",
}
REASONS.update({500: "Internal Server Error", 503: "Service Unavailable"})


class Request(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Reply:
    """One answer on its way to the client, in HTTP chunks."""

    def __init__(self, said: argparse.Namespace, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.said, self.reader, self.writer = said, reader, writer
        self.end = "\r\n" if said.crlf else "\n"

    async def head(self, request_id: str) -> None:
        """Begin the stream."""
        lines = ("HTTP/1.1 200 OK", "content-type: text/event-stream; charset=utf-8", f"x-request-id: {request_id}")
        await self.send("\r\n".join((*lines, "transfer-encoding: chunked", "", "")).encode())

    async def send(self, data: bytes) -> None:
        """Write bytes; ConnectionError when the client is gone."""
        if self.reader.at_eof() or self.writer.is_closing():
            raise ConnectionResetError("the client is gone")
        self.writer.write(data)
        await self.writer.drain()

    async def line(self, text: str) -> None:
        """Write one event or comment, in pieces when that was asked for."""
        data = (text + self.end * 2).encode()
        size = self.said.split or len(data)
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            await self.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            if self.said.split:
                await asyncio.sleep(0)

    async def event(self, event: dict[str, Any]) -> None:
        """Write one JSON event."""
        await self.line("data: " + json.dumps(event))

    async def patiently(self, awaited: Awaitable[Any]) -> None:
        """Wait for something, with comments meanwhile."""
        task = asyncio.ensure_future(awaited)
        try:
            while not (await asyncio.wait({task}, timeout=self.said.keepalive_s))[0]:
                await self.line(": keepalive")
        finally:
            task.cancel()


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection; None when there is no more."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = head.split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        body = await reader.readexactly(int(headers.get("content-length") or 0))
        method, path, _ = first.split(" ", 2)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        return None
    return Request(method, path.partition("?")[0], headers, body)


def whole(status: int, body: Any, kind: str = "application/json", extra: str = "") -> bytes:
    """A complete HTTP answer."""
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n{extra}\r\n"
    return head.encode() + data


def refused(status: int, message: str) -> bytes:
    """An error as engines send it."""
    extra = "retry-after: 1\r\n" if status == 429 else ""
    return whole(status, {"error": {"message": message, "type": REASONS[status], "code": status}}, extra=extra)
