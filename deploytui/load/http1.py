"""An HTTP/1.1 response, read piece by piece: bytes as they come in, the body's bytes out; no sockets, no clock."""

import re
from collections.abc import Callable

from msgspec import Struct

LINE_CAP = 64 << 10
"""Longest status line, header line or chunk-size line [bytes]."""
HEAD_CAP = 256 << 10
"""Longest head, or trailer section [bytes]."""

KNOWN_HEADS = 64
"""Heads that are remembered; those with a date change every second."""

_STATUS = re.compile(rb"HTTP/1\.([0-9]) ([1-5][0-9]{2})(?: .*)?", re.DOTALL)
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_BODILESS = frozenset({204, 304})


class _Bad(ValueError):
    """The peer does not speak HTTP/1.1 as it should."""


class Head(Struct, frozen=True, kw_only=True):
    """Status and headers; names in lower case, repeated headers joined by a comma."""

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


class ResponseReader:
    """Reads one response; interim (1xx) heads are passed over."""

    __slots__ = (
        "_at",
        "_buffer",
        "_due",
        "_framing",
        "_head_bytes",
        "_lines",
        "_state",
        "bad",
        "head",
        "over",
        "surplus",
    )

    def __init__(self) -> None:
        self.head: Head | None = None
        self.over = False
        """The response ended by its own framing."""
        self.surplus = False
        """Bytes came behind the end of the response."""
        self.bad: str | None = None
        """Why the response can't be read on; None while it can."""
        self._state = "head"
        self._framing = ""
        self._buffer = b""
        self._at = 0
        self._due = 0
        self._lines: list[bytes] = []
        self._head_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """The body bytes that this read brought, without framing; what stands before a fault is still given."""
        fresh = self._state == "head" and not self._buffer and not self._lines
        if fresh and (known := _known.get(data)) is not None:
            self._begin(known)
            return b""
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        body: list[bytes] = []
        try:
            while self.bad is None and _STEPS[self._state](self, body):
                pass
        except _Bad as bad:
            self.bad = str(bad)
        if fresh and self.head is not None:
            _remember(data, self.head)
        return body[0] if len(body) == 1 else b"".join(body)

    def begin_body(self, head: Head) -> None:
        """Somebody else has read the head and takes the framing off; what is fed is the body, until the end."""
        self.head = head
        self._framing = self._state = "until_eof"

    def eof(self) -> bool:
        """Note the end of the connection; whether the response was cut short by it."""
        if self._framing == "until_eof":
            self.over = True
        return not self.over

    @property
    def between_chunks(self) -> bool:
        """Whether the next byte begins a chunk of a chunked body."""
        return self._state == "chunked" and self._at == len(self._buffer)

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        if self.head is None or self.bad or not self.over or self.surplus or self._framing == "until_eof":
            return False
        if "transfer-encoding" in self.head.headers and "content-length" in self.head.headers:
            return False
        tokens = self.head.tokens("connection")
        return "close" not in tokens if self.head.minor else "keep-alive" in tokens

    def _line(self) -> bytes | None:
        """The next line without its end; None while it is not whole."""
        end = self._buffer.find(b"\n", self._at)
        if (end if end >= 0 else len(self._buffer)) - self._at > LINE_CAP:
            raise _Bad(f"a header or chunk-size line is longer than {LINE_CAP} bytes")
        if end < 0:
            return None
        line = self._buffer[self._at : end]
        self._at = end + 1
        return line[:-1] if line.endswith(b"\r") else line

    def _headers(self, body: list[bytes]) -> bool:
        line = self._line()
        if line is None:
            return False
        self._head_bytes += len(line) + 2
        if self._head_bytes > HEAD_CAP:
            raise _Bad(f"the head is longer than {HEAD_CAP} bytes")
        if line:
            self._lines.append(line)
        elif self._lines:
            self._begin(_parse_head(self._lines))
        return True

    def _begin(self, head: Head) -> None:
        self._lines, self._head_bytes = [], 0
        if head.status == 101:
            raise _Bad("the peer switched to another protocol")
        if head.status < 200:
            return
        self.head = head
        self._framing, self._due = _framing(head)
        self._state = self._framing
        if self._framing == "length" and not self._due:
            self._end()

    def _length(self, body: list[bytes]) -> bool:
        if not self._take(body):
            return False
        self._end()
        return True

    def _take(self, body: list[bytes]) -> bool:
        """Move what is there of the bytes due into the body; whether all of them came."""
        piece = self._buffer[self._at : self._at + self._due]
        if piece:
            body.append(piece)
        self._at += len(piece)
        self._due -= len(piece)
        return not self._due

    def _until_eof(self, body: list[bytes]) -> bool:
        self._due = len(self._buffer)
        self._take(body)
        return False

    def _chunk_size(self, body: list[bytes]) -> bool:
        line = self._line()
        if line is None:
            return False
        size = line.partition(b";")[0].strip(b" \t")
        if not _SIZE.fullmatch(size):
            raise _Bad(f"{_shown(line)} is no chunk size")
        self._due = int(size, 16)
        end = self._at + self._due
        if self._due and self._buffer.startswith(b"\r\n", end):  # the whole chunk is here, as nearly always
            body.append(self._buffer[self._at : end])
            self._at = end + 2
        else:
            self._state = "chunk_data" if self._due else "trailers"
        return True

    def _chunk_data(self, body: list[bytes]) -> bool:
        if not self._take(body):
            return False
        self._state = "chunk_end"
        return True

    def _chunk_end(self, body: list[bytes]) -> bool:
        line = self._line()
        if line is None:
            return False
        if line:
            raise _Bad(f"{_shown(line)} stands where a chunk should end")
        self._state = "chunked"
        return True

    def _trailers(self, body: list[bytes]) -> bool:
        line = self._line()
        if line is None:
            return False
        self._head_bytes += len(line) + 2
        if self._head_bytes > HEAD_CAP:
            raise _Bad(f"the trailers are longer than {HEAD_CAP} bytes")
        if not line:
            self._end()
        return True

    def _end(self) -> None:
        self._state, self.over = "over", True

    def _behind(self, body: list[bytes]) -> bool:
        self.surplus = self.surplus or self._at < len(self._buffer)
        self._at = len(self._buffer)
        return False


_STEPS: dict[str, Callable[[ResponseReader, list[bytes]], bool]] = {
    "head": ResponseReader._headers,
    "length": ResponseReader._length,
    "until_eof": ResponseReader._until_eof,
    "chunked": ResponseReader._chunk_size,
    "chunk_data": ResponseReader._chunk_data,
    "chunk_end": ResponseReader._chunk_end,
    "trailers": ResponseReader._trailers,
    "over": ResponseReader._behind,
}


_known: dict[bytes, Head] = {}
"""Heads that were read before: a server says the same one again and again."""


def _remember(data: bytes, head: Head) -> None:
    """Bytes that were one whole head and nothing else."""
    if data.find(b"\r\n\r\n") + 4 == len(data) and 200 <= head.status < 300:
        if len(_known) >= KNOWN_HEADS:
            _known.clear()
        _known[data] = head


def _parse_head(lines: list[bytes]) -> Head:
    status = _STATUS.fullmatch(lines[0])
    if status is None:
        raise _Bad(f"{_shown(lines[0])} is no HTTP/1.1 status line")
    headers: dict[str, str] = {}
    name = ""
    for line in lines[1:]:
        text = line.decode(errors="replace")
        if line[:1] in (b" ", b"\t"):  # a folded header goes on
            if not name:
                raise _Bad("the head begins with a folded line")
            headers[name] += " " + text.strip()
            continue
        name, colon, value = text.partition(":")
        name = name.strip().lower()
        if not colon or not name:
            raise _Bad(f"{_shown(line)} is no header")
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
        raise _Bad(f"content-length {head.headers['content-length'][:60]!r} is no length")
    return "length", int(length)


def _shown(line: bytes) -> str:
    return repr(line[:60].decode(errors="replace"))
