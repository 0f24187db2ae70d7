"""A keeper process under test: its orders in, its events out."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.host.living import LIMIT_S, logged

HOST = Path(__file__).parents[2] / "deploytui" / "host"
KEEPER = (sys.executable, "-I", "-S", str(HOST / "keeper.py"))
MOCK = (sys.executable, "-I", str(HOST / "mock_engine.py"), "--port", "0", "--model", "m")
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def python(code: str) -> tuple[str, ...]:
    """An engine of a few lines."""
    return (sys.executable, "-I", "-S", "-u", "-c", code)


@dataclass
class Kept:
    """A keeper and its engine."""

    process: subprocess.Popen[bytes]
    folder: Path
    heard: list[dict[str, Any]] = field(default_factory=list)
    rest: bytes = b""

    @property
    def log(self) -> Path:
        return self.folder / "engine.log"

    @property
    def tail(self) -> Path:
        return self.folder / "engine.tail.log"

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def order(self, argv: Sequence[str], *, grace_s: float = 5.0, **changed: Any) -> None:
        order = {"argv": argv, "env": ENV, "cwd": None, "log": str(self.log), "tail": str(self.tail)}
        self.tell({**order, "grace_s": grace_s, **changed})

    def tell(self, words: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words).encode() + b"\n")

    def cut_leash(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def hear(self, name: str, within_s: float = LIMIT_S) -> dict[str, Any]:
        """The next event, which must have this name."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + within_s
        while b"\n" not in self.rest:
            ready = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            assert data, f"no {name}, {'the end' if ready else 'silence'} after {self.heard}"
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        self.heard.append(event)
        assert event["event"] == name, event
        return event

    def logged(self, pattern: str) -> list[str]:
        return logged(self.log, pattern)


@contextmanager
def keeper(folder: Path, command: Sequence[str] = KEEPER) -> Iterator[Kept]:
    """A keeper that is let go, and waited for, at the end."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    )
    with process:
        try:
            yield Kept(process, folder)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(LIMIT_S)
            finally:
                process.kill()
