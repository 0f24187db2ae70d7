"""Lines to a pipe that may be full: one that does not fit is dropped, one that was begun is finished first."""

import os
from typing import Self


class LineOut:
    """Writes whole lines to a non-blocking descriptor and never waits."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.dropped = 0
        self._fd = fd
        self._begun = b""

    @classmethod
    def claim(cls) -> Self:
        """Keep standard output for our lines; what a library prints goes to standard error."""
        fd = os.dup(1)
        os.dup2(2, 1)
        return cls(fd)

    def offer(self, line: bytes) -> bool:
        """Write a line with its newline, unless the pipe is full; BrokenPipeError when nobody reads any more."""
        if self._begun and self._push(self._begun):
            self.dropped += 1
            return False
        if self._push(line) == len(line):
            self._begun = b""
            self.dropped += 1
            return False
        return True

    def _push(self, content: bytes) -> int:
        """Write what fits and keep the rest; how many bytes are left."""
        try:
            written = os.write(self._fd, content)
        except BlockingIOError:
            written = 0
        self._begun = content[written:]
        return len(self._begun)
