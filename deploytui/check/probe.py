"""Ask an interpreter what is installed in it, within a time limit; whatever goes wrong there is part of the answer."""

import os
import signal
from contextlib import suppress
from subprocess import DEVNULL

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, Process

from deploytui.engine.adapter import NOT_RUN
from deploytui.engine.failures import last_words, signal_name
from deploytui.engine.protocol import Probe, Probed

OUTPUT_LIMIT = 1 << 20
"""What is kept of each stream [bytes]; the rest is read and dropped, so that the probe never waits for us."""

GRACE_S = 2.0
CLEAN_S = 20.0

_decoder = msgspec.json.Decoder(Probed)


async def run_probe(probe: Probe) -> Probed:
    """What the probe told; `found` is false and `error` says why when it told nothing."""
    try:
        process = await anyio.open_process(
            probe.argv, stdin=DEVNULL, env={**os.environ, **probe.env}, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return Probed(found=False, error=f"{probe.argv[0]} {NOT_RUN}{error}")
    out, err, over = bytearray(), bytearray(), False
    try:
        with anyio.move_on_after(probe.timeout_s) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_drain, process.stdout, out)
                tasks.start_soon(_drain, process.stderr, err)
            await process.wait()
            over = True
    finally:
        await _end(process, over=over)
        if probe.cleanup and not over:
            await _clean(probe.cleanup)
    if limit.cancelled_caught:
        return Probed(found=False, error=f"{probe.argv[0]} did not answer within {probe.timeout_s:g} s")
    return _answer(process.returncode, bytes(out), err.decode("utf-8", errors="replace"))


async def _drain(stream: ByteReceiveStream | None, kept: bytearray) -> None:
    if stream is None:
        return
    async for part in stream:
        kept += part[: OUTPUT_LIMIT - len(kept)]


async def _end(process: Process, *, over: bool) -> None:
    """Nothing of an unfinished probe is left: its session is killed, also what it started."""
    with anyio.CancelScope(shield=True):
        if not over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        with anyio.move_on_after(GRACE_S):
            await process.wait()
        await process.aclose()


async def _clean(argv: tuple[str, ...]) -> None:
    """Run the clean-up of an unfinished probe, whatever became of it."""
    with anyio.move_on_after(CLEAN_S, shield=True), suppress(OSError):
        await anyio.run_process(argv, check=False, start_new_session=True)


def _answer(code: int | None, out: bytes, said: str) -> Probed:
    lines = out.strip().splitlines()
    try:
        return _decoder.decode(lines[-1] if lines else b"")
    except msgspec.DecodeError:
        return Probed(found=False, error=_no_answer(code, said))


def _no_answer(code: int | None, said: str) -> str:
    words = last_words(said.splitlines(), lines=1)
    how = "the probe gave no answer"
    if code is not None and code < 0:
        how = f"the probe died by signal {-code} ({signal_name(-code) or 'unknown'})"
    elif code:
        how = f"the probe ended with status {code}"
    return f"{how}: {words}" if words else how
