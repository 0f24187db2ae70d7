"""The tool's own error on this machine: the real load path against a paced server that knows the truth."""

import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec
from anyio import open_signal_receiver
from msgspec import Struct

from deploytui import __version__
from deploytui.run.certificate import trusted, write_certificate
from deploytui.run.children import unwrapped
from deploytui.run.paced import Schedule
from deploytui.run.selftest_cores import Cores, on, shared_out
from deploytui.run.selftest_load import Size, measure
from deploytui.run.selftest_result import Row, SelfTest, good_for, sentence
from deploytui.run.selftest_text import progress, selftest_text

STREAMS = (64, 256, 1000, 2000)
TOKENS, QUICK_TOKENS = 128, 32
ITL_MS = 20.0
TTFT_MS = 200.0
"""Long enough for the server to have seen all requests before its first tokens are due."""
INTERRUPTED = 130

Say = Callable[[str], None]


class Asked(Struct, frozen=True, kw_only=True):
    """What to measure."""

    streams: tuple[int, ...] = STREAMS
    itl_ms: float = ITL_MS
    tokens: int = TOKENS
    workers: int | None = None
    """None for one on each core that the server leaves."""
    tls: bool = False


class Told(Struct, frozen=True, kw_only=True):
    """What a self-test has to say; text and JSON are empty when it was interrupted."""

    status: int
    text: str = ""
    json: bytes = b""


def run_selftest(asked: Asked, say: Say) -> Told:
    """Measure here and now, with progress in words; status 1 when no number of streams could be measured."""
    with tempfile.TemporaryDirectory(prefix="deploytui-selftest-") as folder, unwrapped():
        result = anyio.run(_interruptible, asked, say, Path(folder))
    if result is None:
        return Told(status=INTERRUPTED)
    measured = any(row.verdict != "not measured" for row in result.rows)
    text = msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"
    return Told(status=0 if measured else 1, text=selftest_text(result), json=text)


async def _interruptible(asked: Asked, say: Say, folder: Path) -> SelfTest | None:
    """None after SIGINT or SIGTERM, with everything that was started gone."""
    result: SelfTest | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_obey_signals, group.cancel_scope)
        result = await _selftest(asked, say, folder)
        group.cancel_scope.cancel()
    return result


async def _obey_signals(scope: anyio.CancelScope) -> None:
    with open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
        async for _ in received:
            scope.cancel()


async def _selftest(asked: Asked, say: Say, folder: Path) -> SelfTest:
    cores = shared_out()
    certificate = await write_certificate(folder) if asked.tls else None
    schedule = Schedule(ttft_ms=TTFT_MS, itl_ms=asked.itl_ms, cpu=cores.server, certificate=certificate)
    workers = asked.workers or len(cores.load or ()) or 1
    rows = []
    with trusted(certificate), on(cores.load):
        for streams in asked.streams:
            size = Size(streams=streams, tokens=asked.tokens, itl_ms=asked.itl_ms, workers=min(workers, streams))
            say(f"selftest (simulated): {streams:,} streams × {asked.tokens} tokens, one each {asked.itl_ms:g} ms …")
            row = await measure(size, schedule, session=f"selftest-{os.getpid()}", folder=_new(folder / str(streams)))
            say(f"  {progress(row)}")
            rows.append(row)
    return _result(asked, cores, workers, rows)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _result(asked: Asked, cores: Cores, workers: int, rows: Sequence[Row]) -> SelfTest:
    return SelfTest(
        version=__version__,
        itl_ms=asked.itl_ms,
        tokens=asked.tokens,
        tls=asked.tls,
        workers=workers,
        cores=cores.number,
        pinned=cores.server is not None,
        good_for=good_for(rows),
        sentence=sentence(rows, itl_ms=asked.itl_ms),
        rows=tuple(rows),
    )
