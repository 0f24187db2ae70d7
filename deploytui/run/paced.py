"""The paced server of the self-test as a child: started, asked for its truth, gone at the end whatever happens."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Process
from msgspec import Struct

from deploytui.errors import DeployError
from deploytui.run.children import child, lines, marked, tell
from deploytui.run.selftest_result import ServerSaid

SERVER = Path(__file__).parent.parent / "host" / "paced_server.py"
MODEL = "simulated-paced"
READY_S = 30.0
TRUTH_S = 60.0
END_S = 10.0


class Schedule(Struct, frozen=True, kw_only=True):
    """How the server paces its streams, and how it is reached."""

    ttft_ms: float
    itl_ms: float
    cpu: int | None = None
    """The core it stays on."""
    certificate: Path | None = None
    """With its key in the same file; TLS only then."""


class _Late(Struct, frozen=True):
    p99: float


class _Line(Struct, frozen=True):
    """A line of the server."""

    event: str
    port: int = 0
    late_us: _Late | None = None
    cpu_s: float | None = None


@dataclass
class PacedServer:
    """A server that listens."""

    port: int
    truth: Path
    _process: Process
    _told: AsyncIterator[bytes]

    async def told_truth(self) -> ServerSaid:
        """Have it write the truth file; how late it was by its own schedule."""
        await tell(self._process, b"truth")
        line = await _next(self._told, TRUTH_S, self.truth.with_name("server.log"))
        return ServerSaid(late_us_p99=line.late_us.p99 if line.late_us else None, cpu_s=line.cpu_s)


@asynccontextmanager
async def paced_server(schedule: Schedule, *, session: str, folder: Path) -> AsyncIterator[PacedServer]:
    """A server for the time of a block; its truth file and its log are in the folder. DeployError when it is none."""
    truth, log = folder / "truth.bin", folder / "server.log"
    argv = (sys.executable, "-I", "-S", str(SERVER), "--leash", "--truth", str(truth), *_options(schedule))
    async with child(argv, env=marked(session), errors=log, grace_s=END_S) as process:
        told = lines(process)
        ready = await _next(told, READY_S, log)
        yield PacedServer(ready.port, truth, process, told)


def _options(schedule: Schedule) -> tuple[str, ...]:
    cpu = () if schedule.cpu is None else ("--cpu", str(schedule.cpu))
    cert = () if schedule.certificate is None else ("--cert", str(schedule.certificate))
    return ("--ttft-ms", str(schedule.ttft_ms), "--itl-ms", str(schedule.itl_ms), *cpu, *cert)


async def _next(told: AsyncIterator[bytes], within_s: float, log: Path) -> _Line:
    with anyio.move_on_after(within_s):
        async for line in told:
            return msgspec.json.decode(line, type=_Line)
    raise DeployError("The paced server of the self-test did not answer.", why=_last_line(log))


def _last_line(log: Path) -> str:
    words = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    return words[-1] if words else ""
