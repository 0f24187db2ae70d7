"""Bytes of a journal in, events out; a torn tail waits, a broken or unknown line is counted and passed over."""

from dataclasses import dataclass, field

import msgspec

from deploytui.record.events import AnyEvent, decoder


@dataclass(slots=True)
class LineReader:
    """Takes blocks of any size; what stands behind the last newline is kept for the next block."""

    tail: bytes = b""
    unreadable: int = 0
    """Lines that were no event we know."""
    samples: list[str] = field(default_factory=list)
    """The first few unreadable lines, cut short."""

    def feed(self, block: bytes) -> list[AnyEvent]:
        """The events that became whole with this block, in order."""
        whole, newline, self.tail = (self.tail + block).rpartition(b"\n")
        return self._decode(whole) if newline else []

    def _decode(self, whole: bytes) -> list[AnyEvent]:
        try:
            return decoder.decode_lines(whole)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return [event for line in whole.split(b"\n") if (event := self._one(line)) is not None]

    def _one(self, line: bytes) -> AnyEvent | None:
        if not line.strip():
            return None
        try:
            return decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self.unreadable += 1
            if len(self.samples) < 5:
                self.samples.append(line[:200].decode(errors="replace"))
            return None
