"""The head of an HTTP/1.1 response, and what follows from it."""

import re
from functools import cached_property

from msgspec import Struct

KNOWN_HEADS = 64
"""Heads that are remembered; those with a date change every second."""

_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([1-5][0-9]{2})(?: .*)?", re.DOTALL)
_BODILESS = frozenset({204, 304})


class BadResponse(ValueError):
    """The peer does not speak HTTP/1.1 as it should."""


class Head(Struct, frozen=True, kw_only=True, dict=True):
    """Status and headers; names in lower case, repeated headers joined by a comma.

    What follows from them is worked out once: answers of one server share their head.
    """

    status: int
    minor: int
    headers: dict[str, str]

    @property
    def media_type(self) -> str:
        """The content type without parameters, in lower case; empty when the peer names none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def tokens(self, name: str) -> list[str]:
        """The comma-separated words of a header, in lower case."""
        return [token.strip().lower() for token in self.headers.get(name, "").split(",") if token.strip()]

    @cached_property
    def is_event_stream(self) -> bool:
        """Whether an event stream follows."""
        plain = self.tokens("content-encoding") in ([], ["identity"])
        return 200 <= self.status < 300 and self.media_type == "text/event-stream" and plain

    @cached_property
    def framing(self) -> tuple[str, int]:
        """How the body's end is told (`length`, `chunked`, `until_eof`), and its length; raises BadResponse."""
        return _framing(self)

    @cached_property
    def keeps_alive(self) -> bool:
        """Whether the peer lets the connection carry another request, and says only one end of this response."""
        if "transfer-encoding" in self.headers and "content-length" in self.headers:
            return False
        tokens = self.tokens("connection")
        return "close" not in tokens if self.minor else "keep-alive" in tokens


def parse_head(lines: list[bytes]) -> Head:
    """The head that these lines are; raises BadResponse."""
    status = _STATUS.fullmatch(lines[0])
    if status is None:
        raise BadResponse(f"{shown(lines[0])} is no HTTP/1.1 status line")
    headers: dict[str, str] = {}
    name = ""
    for line in lines[1:]:
        text = line.decode(errors="replace")
        if line[:1] in (b" ", b"\t"):  # a folded header goes on
            if not name:
                raise BadResponse("the head begins with a folded line")
            headers[name] += " " + text.strip()
            continue
        name, colon, value = text.partition(":")
        name = name.strip().lower()
        if not colon or not name:
            raise BadResponse(f"{shown(line)} is no header")
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return Head(status=int(status[2]), minor=int(status[1]), headers=headers)


def _framing(head: Head) -> tuple[str, int]:
    """How the body's end is told (`length`, `chunked`, `until_eof`), and its length."""
    if head.status in _BODILESS:
        return "length", 0
    codings = head.tokens("transfer-encoding")
    if codings:
        return ("chunked", 0) if codings[-1] == "chunked" else ("until_eof", 0)
    lengths = set(head.tokens("content-length"))
    if not lengths:
        return "until_eof", 0
    length = lengths.pop()
    if lengths or not (length.isascii() and length.isdigit()):
        raise BadResponse(f"content-length {head.headers['content-length'][:60]!r} is no length")
    return "length", int(length)


def shown(line: bytes) -> str:
    """A line of the peer's for a message."""
    return repr(line[:60].decode(errors="replace"))


_known: dict[bytes, Head] = {}


def known(data: bytes) -> Head | None:
    """The head that these bytes were before: a server says the same one again and again."""
    return _known.get(data)


def remember(data: bytes, head: Head) -> None:
    """Keep a good head, whose bytes were these and nothing else."""
    if 200 <= head.status < 300:
        if len(_known) >= KNOWN_HEADS:
            _known.clear()
        _known[data] = head
