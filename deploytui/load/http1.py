"""An HTTP/1.1 response, read piece by piece: bytes as they come in, the body's bytes out; no sockets, no clock."""

import re
from collections.abc import Callable

from deploytui.load.head import BadResponse, Head, known, parse_head, remember, shown

LINE_CAP = 64 << 10
"""Longest status line, header line or chunk-size line [bytes]."""
HEAD_CAP = 256 << 10
"""Longest head, or trailer section [bytes]."""

_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
_LAST_CHUNK = b"0\r\n\r\n"
"""The end of a chunked body without trailers."""


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
        if fresh and (head := known(data)) is not None:
            self._begin(head)
            return b""
        if data == _LAST_CHUNK and self.between_chunks:
            self._end()
            return b""
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        body: list[bytes] = []
        try:
            while self.bad is None and _STEPS[self._state](self, body):
                pass
        except BadResponse as bad:
            self.bad = str(bad)
        if fresh and self.head is not None and not body and self._stands_behind_head:
            remember(data, self.head)
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
    def _stands_behind_head(self) -> bool:
        """Whether nothing was read but the head."""
        if self.bad is not None or self.surplus or self._at < len(self._buffer):
            return False
        return self._state == self._framing or (self.over and self._framing == "length")

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        if self.head is None or self.bad or not self.over or self.surplus or self._framing == "until_eof":
            return False
        return self.head.keeps_alive

    def _line(self) -> bytes | None:
        """The next line without its end; None while it is not whole."""
        end = self._buffer.find(b"\n", self._at)
        if (end if end >= 0 else len(self._buffer)) - self._at > LINE_CAP:
            raise BadResponse(f"a header or chunk-size line is longer than {LINE_CAP} bytes")
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
            raise BadResponse(f"the head is longer than {HEAD_CAP} bytes")
        if line:
            self._lines.append(line)
        elif self._lines:
            self._begin(parse_head(self._lines))
        return True

    def _begin(self, head: Head) -> None:
        self._lines, self._head_bytes = [], 0
        if head.status == 101:
            raise BadResponse("the peer switched to another protocol")
        if head.status < 200:
            return
        self.head = head
        self._framing, self._due = head.framing
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
            raise BadResponse(f"{shown(line)} is no chunk size")
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
            raise BadResponse(f"{shown(line)} stands where a chunk should end")
        self._state = "chunked"
        return True

    def _trailers(self, body: list[bytes]) -> bool:
        line = self._line()
        if line is None:
            return False
        self._head_bytes += len(line) + 2
        if self._head_bytes > HEAD_CAP:
            raise BadResponse(f"the trailers are longer than {HEAD_CAP} bytes")
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
