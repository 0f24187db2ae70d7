"""The toy host as a process under test, asked over raw HTTP; and the modules of the shared door in this process."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import deploytui
from tests.host.mocks import Answer, Mock

HOST = Path(deploytui.__file__).parent / "host"
TOY = Path(__file__).parent / "toy_host.py"
ENV = {**os.environ, "DEPLOYTUI_HOST_FOLDER": str(HOST)}


@dataclass
class Toy(Mock):
    """A toy host that listens, or is about to."""

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        return lowered(super().send(method, path, body, **headers))


def contents(answer: Answer) -> list[str]:
    """The texts of a streamed chat, a chunk each."""
    return [delta["content"] for delta in answer.deltas if delta.get("content")]


def lowered(answer: Answer) -> Answer:
    """Names of headers in one case."""
    head, gap, rest = answer.raw.partition(b"\r\n\r\n")
    return Answer(head.lower() + gap + rest)


def argv(*options: str, port: int = 0) -> Sequence[str]:
    return (sys.executable, str(TOY), "--model", "none", "--alias", "m", "--port", str(port), *options)


def begun(process: subprocess.Popen[bytes]) -> Toy:
    """The host once it serves."""
    assert process.stdout is not None
    log = b""
    while not (found := re.search(rb"serves on http://\S+:(\d+)\n", log)):
        line = process.stdout.readline()
        assert line, log
        log += line
    return Toy(process, int(found[1]), log)


@contextmanager
def toy(*options: str, env: dict[str, str] | None = None) -> Iterator[Toy]:
    """A toy host that is killed at the end."""
    with subprocess.Popen(argv(*options), stdout=subprocess.PIPE, env={**ENV, **(env or {})}) as process:
        try:
            yield begun(process)
        finally:
            process.kill()


def run(*options: str, port: int = 0) -> subprocess.CompletedProcess[bytes]:
    """A toy host that ends by itself."""
    return subprocess.run(argv(*options, port=port), capture_output=True, timeout=20, env=ENV, check=False)
