"""Rendered requests that are more than memory shall hold: in a file without a name, a read away from being sent."""

import os
from pathlib import Path

from msgspec import Struct

from deploytui.load.trouble import LoadError

IN_MEMORY_BYTES = 96 << 20
"""Requests up to this altogether stay in memory; what was written just now is read back from the page cache."""


class Spooled(Struct, frozen=True, gc=False):
    """A request in the file."""

    fd: int
    at: int
    size: int

    def read(self) -> bytes:
        """Its bytes."""
        return os.pread(self.fd, self.size, self.at)


class Spool:
    """Keeps requests, the first ones in memory; its file lives as long as the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = self._written = 0
        self._fd: int | None = None

    def kept(self, content: bytes) -> bytes | Spooled:
        """The bytes themselves, or where they lie; raises LoadError when there is no room for them."""
        if self._held + len(content) <= IN_MEMORY_BYTES:
            self._held += len(content)
            return content
        at, size = self._written, len(content)
        try:
            if self._fd is None:
                self._fd = self._opened()
            if os.pwrite(self._fd, content, at) < size:
                raise OSError("no space left")
        except OSError as error:
            what = f"The requests don't fit into memory, and {self._folder} can't hold them."
            raise LoadError(what, why=str(error), fix="Make room on that disk, or send fewer requests.") from error
        self._written += size
        return Spooled(self._fd, at, size)

    def _opened(self) -> int:
        import tempfile  # takes long to load, and few loads are so large

        fd, path = tempfile.mkstemp(dir=self._folder, prefix=".requests-")
        Path(path).unlink()
        return fd
