"""The reading end of the journal: what is new since the last look, or the whole fold."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from deploytui.errors import SessionError
from deploytui.record.events import AnyEvent
from deploytui.record.fold import fold_all
from deploytui.record.lines import LineReader
from deploytui.record.state import SessionState

BLOCK = 1 << 20
MOST = 8 << 20
"""Most bytes of one look, so that catching up with a long session doesn't freeze a screen."""


class JournalTail:
    """Follows a journal that another process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reader = LineReader()
        """Knows how many lines were unreadable."""
        self.offset = 0
        """Where the last whole line ended."""

    def read(self) -> list[AnyEvent]:
        """The events that became whole since the last call, at most 8 MiB of them; empty when there is nothing new.

        A torn end is read again each time and never kept: a restarted runner cuts it off and writes over it.
        """
        try:
            with self.path.open("rb") as file:
                return self._read(file)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _read(self, file: BinaryIO) -> list[AnyEvent]:
        self.offset = min(self.offset, file.seek(0, 2))
        file.seek(self.offset)
        events: list[AnyEvent] = []
        for block in _blocks(file, MOST):
            events += self.reader.feed(block)
            self.offset += len(block)
        self.offset -= len(self.reader.tail)
        self.reader.tail = b""
        return events


def load_state(path: Path) -> tuple[SessionState, LineReader]:
    """The state of the whole journal, and its reader with what was unreadable; SessionError when it can't be opened."""
    reader, state = LineReader(), SessionState()
    try:
        with path.open("rb") as file:
            for block in _blocks(file):
                state = fold_all(reader.feed(block), state)
    except OSError as error:
        raise _unreadable(path, error) from error
    return state, reader


def _blocks(file: BinaryIO, most: int | None = None) -> Iterator[bytes]:
    left = most
    while (left is None or left > 0) and (block := file.read(BLOCK if left is None else min(BLOCK, left))):
        left = None if left is None else left - len(block)
        yield block


def _unreadable(path: Path, error: OSError) -> SessionError:
    return SessionError(f"The journal {path} can't be read.", why=str(error), fix="Check that it exists and its mode.")
