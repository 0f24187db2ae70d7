"""The paced server in C (`floor/server.c`), and its log: when each request arrived and sent each event."""

import json
import struct
import subprocess
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from benchmarks.compiled import compiled
from benchmarks.cores import favour, on_cores

MODEL = "bench"
NO_ID = 2**32 - 1
_HEAD = struct.Struct("<IIIIqqq")


@dataclass(frozen=True, slots=True)
class Served:
    """One request as the server saw it; times are CLOCK_MONOTONIC [ns]."""

    id: int
    """Its `X-Request-Id`; `NO_ID` without one."""
    asked_tokens: int
    events: int
    arrived_ns: int
    """By the stamp of the server's kernel: what it waited before it was read counts as serving."""
    first_due_ns: int
    last_ns: int
    sent_ns: "array[int]"
    """Right before send(2), one an event; empty where stamps were off."""


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def expect(self, **settings: int) -> None:
        """Serve the next load so (`ttft_us`, `itl_us`, `tokens`, `burst`, `grid_us`, `stamps`); forgets the log."""
        values = {"ttft_us": 200_000, "itl_us": 20_000, "tokens": 128, "burst": 0, "grid_us": 0, "stamps": 1} | settings
        self._get("/ctl/load?" + "&".join(f"{name}={value}" for name, value in values.items()))

    def log(self) -> list[Served]:
        """What it served since `expect`, in order."""
        return list(_parsed(self._get("/ctl/log"), stamped=True))

    def log_without_stamps(self) -> list[Served]:
        """The same for a load that was served with `stamps=0`."""
        return list(_parsed(self._get("/ctl/log"), stamped=False))

    def stats(self) -> dict[str, Any]:
        """`first_arrived_ns` of any request, `requests`, and `blocked_sends`: those a client did not take at once."""
        told: dict[str, Any] = json.loads(self._get("/ctl/stats"))
        return told

    def _get(self, path: str) -> bytes:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"the server refused {path}")
        return content


def _parsed(content: bytes, *, stamped: bool) -> Iterator[Served]:
    at = 0
    while at < len(content):
        request, events, asked, _, arrived, due, last = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        size = 8 * events if stamped else 0
        yield Served(request, asked, events, arrived, due, last, array("q", content[at : at + size]))
        at += size


def span_ns(served: Sequence[Served]) -> tuple[int, int]:
    """From the arrival of the first request to the last token sent."""
    return min(request.arrived_ns for request in served), max(request.last_ns for request in served)


def tokens_per_s(served: Sequence[Served]) -> float:
    """What was sent within that span."""
    begin, end = span_ns(served)
    return sum(request.events for request in served) / (end - begin) * 1e9


@contextmanager
def serving(core: int) -> Iterator[Server]:
    """A server on a core of its own."""
    with on_cores(core):
        process = subprocess.Popen([compiled("server")], stdout=subprocess.PIPE, text=True, start_new_session=True)
    favour(process.pid)
    try:
        assert process.stdout is not None
        yield Server(process.pid, int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()
