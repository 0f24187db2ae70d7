"""Lines to a pipe that may be full: one that does not fit is dropped, one that was begun is finished first."""

import os
from typing import Self


class LineOut:
    """Writes whole lines to a descriptor and, where that is no terminal, never waits."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.dropped = 0
        self.gone = False
        """Whether nobody reads any more."""
        self._begun = b""
        if not os.isatty(fd):  # a terminal's state is shared with the shell
            os.set_blocking(fd, False)

    @classmethod
    def claim(cls) -> Self:
        """Keep standard output for our lines; what a library prints goes to standard error."""
        fd = os.dup(1)
        os.dup2(2, 1)
        return cls(fd)

    @property
    def unfinished(self) -> bool:
        """Whether part of a line still waits for room."""
        return bool(self._begun)

    def offer(self, line: bytes) -> bool:
        """Write a line with its newline, unless the pipe is full. Whether it was taken."""
        self.push()
        if not self._begun and not self.gone:
            self._begun = line
            self.push()
            if len(self._begun) < len(line):
                return True
            self._begun = b""
        self.dropped += 1
        return False

    def begin(self, line: bytes) -> None:
        """Write a line that is not dropped: what does not fit goes out with later pushes."""
        self._begun += line
        self.push()

    def push(self) -> None:
        """Write what fits of the line that was begun."""
        try:
            while self._begun:
                self._begun = self._begun[os.write(self.fd, self._begun) :]
        except BlockingIOError:
            return
        except OSError:
            self.gone = True
