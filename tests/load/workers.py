"""A worker as a process under way on an order, with its pipes."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deploytui.load.orders import LoadOrder, Prompt, Report, Said, said_decoder
from deploytui.record.trace import RequestRecord
from tests.load.replay import delta, event
from tests.load.server import HANG, HEAD, Asked, Script, Server, Step, chunk, tokens

WORKER = (sys.executable, "-m", "deploytui.load.worker")


class Load:
    """A worker under way on an order, with its pipes."""

    def __init__(
        self,
        folder: Path,
        url: str,
        count: int = 0,
        *,
        argv: Sequence[str] = WORKER,
        env: dict[str, str] | None = None,
        stdout: int = subprocess.PIPE,
        lines: Sequence[Prompt] = (),
        **changes: object,
    ) -> None:
        self.folder = folder
        prompts = folder / "prompts.jsonl"
        asked = lines or [Prompt(id=k, prompt=f"p{k}") for k in range(count)]
        prompts.write_bytes(msgspec.json.Encoder().encode_lines(asked))
        plain: dict[str, object] = {
            "base_url": url,
            "endpoint": "chat",
            "model": "m",
            "output_tokens": 4,
            "prompts": str(prompts),
            "concurrency": 4,
            "records": str(folder / "requests.w0.jsonl"),
            "stamps": str(folder / "stamps.w0.bin"),
        }
        self.order = msgspec.convert(plain | changes, LoadOrder)
        full = os.environ | (env or {})
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, env=full)
        self.write(msgspec.json.encode(self.order) + b"\n")

    def write(self, line: bytes) -> None:
        """A line on the worker's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def let_go(self) -> None:
        """Close the worker's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def said(self) -> list[Said]:
        """All it said until it ended; its standard input stays open."""
        assert self.process.stdout is not None
        lines = self.process.stdout.read().splitlines()
        self.process.wait(20)
        return [said_decoder.decode(line) for line in lines]

    def errors(self) -> str:
        """What it wrote on standard error."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def records(self) -> list[RequestRecord]:
        """The finished requests."""
        return msgspec.json.Decoder(RequestRecord).decode_lines(Path(self.order.records).read_bytes())

    def end(self) -> None:
        """Leave nothing behind."""
        self.process.kill()
        self.process.wait(20)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


@contextlib.contextmanager
def loading(folder: Path, server: Server | str, count: int = 8, **options: Any) -> Iterator[Load]:
    """A worker for the time of a block."""
    load = Load(folder, server if isinstance(server, str) else server.url, count, **options)
    try:
        yield load
    finally:
        load.end()


def report_of(said: list[Said]) -> Report:
    last = said[-1]
    assert isinstance(last, Report), last
    return last


def hangs_from(number: int) -> Script:
    """Requests with this id and above begin and never end."""

    def script(asked: Asked) -> list[Step]:
        begun: list[Step] = [HEAD + chunk(event(data=delta(content="a"))), HANG]
        return list(tokens(2)) if asked.id < number else begun

    return script


def until(state: Callable[[], bool], limit_s: float = 20) -> None:
    """Wait for a state."""
    end = time.monotonic() + limit_s
    while not state():
        assert time.monotonic() < end, "the state did not come in time"
        time.sleep(0.005)
