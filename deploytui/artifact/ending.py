"""The end of a process that was started in a session of its own, with all that it started."""

import os
import signal
from contextlib import suppress

import anyio
from anyio.abc import Process


async def end_group(process: Process, grace_s: float) -> None:
    """Ask its process group to end, then insist, and let its pipes go; also while everything is being cancelled."""
    with anyio.CancelScope(shield=True):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if process.returncode is not None:
                break
            with suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with anyio.move_on_after(grace_s):
                await process.wait()
        await process.aclose()
