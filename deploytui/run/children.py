"""Processes the runner owns: argv, JSON lines in and out, a leash on standard input, a session of their own."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from deploytui.session.leftovers import mark

LINE_CAP = 4 << 20
_own: set[int] = set()


def own_children() -> frozenset[int]:
    """Pids of the processes started here that were not waited for yet."""
    return frozenset(_own)


def marked(session: str, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Our environment with a UTF-8 locale and `more`; the session's mark comes last, since clean-up goes by it."""
    utf8 = {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **utf8, **more, **mark(session)}


@contextmanager
def unwrapped() -> Iterator[None]:
    """Task groups wrap even one error: let a lone one through as itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        lone: BaseException = group
        while isinstance(lone, BaseExceptionGroup) and len(lone.exceptions) == 1:
            lone = lone.exceptions[0]
        raise lone from lone.__cause__


@asynccontextmanager
async def child(
    argv: tuple[str, ...], *, env: dict[str, str], errors: Path | None, grace_s: float
) -> AsyncIterator[Process]:
    """A process that lives as long as the block: its leash is cut at the end, then it is waited for, then killed.

    Its standard error goes to the file `errors`, or where its standard output goes.
    """
    with errors.open("ab") if errors is not None else nullcontext(subprocess.STDOUT) as stderr:
        process = await anyio.open_process(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=env,
            start_new_session=True,
        )
    _own.add(process.pid)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await end(process, grace_s)
            _own.discard(process.pid)


async def end(process: Process, grace_s: float) -> None:
    """Cut the leash, wait, insist; every wait is bounded."""
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    for seconds, insist in ((grace_s, signal.SIGTERM), (1.0, signal.SIGKILL), (5.0, signal.SIGKILL)):
        with anyio.move_on_after(seconds):
            await process.wait()
            break
        with suppress(ProcessLookupError):
            process.send_signal(insist)
    with suppress(anyio.ClosedResourceError):
        assert process.stdout is not None
        await process.stdout.aclose()


async def tell(process: Process, line: bytes) -> None:
    """Send one line; a process that is gone is noticed elsewhere."""
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.send(line + b"\n")


async def lines(process: Process) -> AsyncIterator[bytes]:
    """Its lines until it closes standard output; a torn last line is dropped."""
    assert process.stdout is not None
    stream = BufferedByteReceiveStream(process.stdout)
    with suppress(anyio.IncompleteRead, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            yield await stream.receive_until(b"\n", LINE_CAP)
