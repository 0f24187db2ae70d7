"""One load worker process from order to report."""

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec

from deploytui.errors import DeployError
from deploytui.load.orders import LoadOrder, Report, Snapshot, Trouble, said_decoder
from deploytui.run.children import child, lines, marked, tell

WORKER = (sys.executable, "-m", "deploytui.load.worker")
LAST_WORDS_S = 10.0
"""How long a worker may take to write down what is finished after it was told to stop [s]."""


async def run_load(order: LoadOrder, *, session: str, errors: Path, hear: Callable[[Snapshot], None]) -> Report:
    """The worker's report; on cancellation it is told to stop and its finished requests are kept on disk."""
    async with child(WORKER, env=marked(session), errors=errors, grace_s=LAST_WORDS_S) as worker:
        await tell(worker, msgspec.json.encode(order))
        async for line in lines(worker):
            match said_decoder.decode(line):
                case Snapshot() as snapshot:
                    hear(snapshot)
                case Report() as report:
                    return report
                case Trouble(what=what, why=why, fix=fix):
                    raise DeployError(what, why=why, fix=fix)
        with anyio.move_on_after(LAST_WORDS_S):
            await worker.wait()
        raise DeployError(
            f"The load worker ended with status {worker.returncode} before its report.",
            why=_last_line(errors),
            fix="The whole text is in workers.log of the session.",
        )


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return lines[-1] if lines else ""
