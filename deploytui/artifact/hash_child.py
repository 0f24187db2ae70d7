"""Hash files at the lowest priority there is. A JSON order in, JSON lines out; `pause` and `go` in between.

    python -m deploytui.artifact.hash_child

It ends when its standard input closes.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from deploytui.artifact.files import CHUNK, known_sha256, sha256_file
from deploytui.artifact.hash_words import AllHashed, Hashed, HashOrder, Read, Unread
from deploytui.errors import DeployError

TELL_S = 0.5


class Work:
    """The hashing under way: what it read, for how long, and whether it may go on."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.seconds = 0.0
        self.bytes = 0
        self._since = time.monotonic()
        self._told = 0.0

    def read(self) -> bool:
        """A block was read: count it, and go on as after a step."""
        self.bytes += CHUNK
        return self.step()

    def step(self) -> bool:
        """Wait while paused, tell now and then; never stop."""
        now = time.monotonic()
        self.seconds += now - self._since
        if now - self._told > TELL_S:
            self._told = now
            say(Read(bytes=self.bytes, seconds=self.seconds))
        self.go.wait()
        self._since = time.monotonic()
        return False


def main() -> None:
    """Hash what the order names."""
    be_humble()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=HashOrder)
    work = Work()
    threading.Thread(target=listen, args=(work,), daemon=True).start()
    for name, path in order.files.items():
        one_file(work, name, Path(path), Path(order.cache) if order.cache else None)
    work.step()
    say(AllHashed(seconds=work.seconds))
    # The thread still reads standard input, and an interpreter that ends in order aborts over that.
    os._exit(0)


def one_file(work: Work, name: str, path: Path, cache: Path | None) -> None:
    """Hash one file and say what came of it."""
    before = work.bytes
    try:
        found = known_sha256(path, cache, stop=work.read) if cache else sha256_file(path, stop=work.read)
        work.bytes = before + path.stat().st_size
    except (DeployError, OSError) as error:
        say(Unread(name=name, why=str(getattr(error, "why", "") or error)))
        return
    assert found is not None, "nothing asks it to stop"
    say(Hashed(name=name, sha256=found))


def listen(work: Work) -> None:
    """Obey until the other end is gone."""
    for line in sys.stdin.buffer:
        (work.go.clear if line.strip() == b"pause" else work.go.set)()
    os._exit(0)


def say(word: msgspec.Struct) -> None:
    """One line to the parent."""
    os.write(1, msgspec.json.encode(word) + b"\n")


def be_humble() -> None:
    """Take the processor and the disk only when nobody else wants them, as far as this system has words for it."""
    with suppress(OSError):
        os.nice(19)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(Exception):  # foreign code, and nothing depends on it
        _idle_disk()


def _idle_disk() -> None:
    import psutil

    disk: Any = psutil.Process()
    disk.ionice(psutil.IOPRIO_CLASS_IDLE)


if __name__ == "__main__":
    main()
