"""An event stream, read piece by piece: bytes as they come in, whole events out; decoding is left to the caller."""

from typing import NamedTuple

EVENT_CAP = 8 << 20
"""Longest line, and most data of one event [bytes]."""

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its data lines joined by LF, and its name where it has one."""

    data: bytes
    name: bytes = b""


class EventReader:
    """Splits on bytes, so that no read boundary can cut a character; LF, CRLF and CR all end a line."""

    __slots__ = ("_after_cr", "_begun", "_data", "_data_bytes", "_name", "_tail", "comments", "too_long")

    def __init__(self) -> None:
        self.comments = 0
        """Comment lines so far: no data, but a sign of life."""
        self.too_long = False
        """A line or an event passed the cap; nothing behind it is read."""
        self._tail = bytearray()
        self._after_cr = False
        self._begun = False
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""

    @property
    def between_events(self) -> bool:
        """Whether the next byte begins an event."""
        return not (self._tail or self._data or self._name or self._after_cr or self.too_long)

    def feed(self, data: bytes) -> list[Event]:
        """The events that became whole with this read, in order."""
        if self.too_long:
            return []
        if self._after_cr or b"\r" in data:
            data = self._with_lf(data)
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._tail += rest
            self._cap(len(self._tail))
            return []
        lines = (bytes(self._tail) + whole).split(b"\n") if self._tail else whole.split(b"\n")
        self._tail = bytearray(rest)
        events = self._events(lines)
        self._cap(len(rest))
        return events

    def unterminated(self) -> Event | None:
        """The event whose end never came, to be asked for at the end of the stream; None when there is none."""
        if self.too_long:
            return None
        self._line(bytes(self._tail))
        self._tail.clear()
        return self._event()

    def _with_lf(self, data: bytes) -> bytes:
        if self._after_cr and data:  # the LF of a CRLF that a read boundary cut
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if data:
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, lines: list[bytes]) -> list[Event]:
        events = []
        for line in lines:
            if line:
                self._line(line)
                if self.too_long:
                    break
            elif event := self._event():
                events.append(event)
        return events

    def _line(self, line: bytes) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        self._cap(len(line))
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._add(value)
        elif field == b"event":
            self._name = value
        elif field == b"error":  # older llama.cpp servers report a failure in a field of this name
            self._name = field
            self._add(value)
        elif not field and line:
            self.comments += 1

    def _add(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value) + 1
        self._cap(self._data_bytes)

    def _event(self) -> Event | None:
        """The event that ends here; None when it carries no data."""
        data = b"\n".join(self._data)
        event = Event(data, self._name) if data else None
        self._data, self._data_bytes, self._name = [], 0, b""
        return event

    def _cap(self, size: int) -> None:
        if size > EVENT_CAP:
            self.too_long = True
            self._tail.clear()
            self._data.clear()
