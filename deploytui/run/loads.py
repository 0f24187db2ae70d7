"""The load worker processes of one load, from their orders to their reports."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Process
from msgspec.structs import replace

from deploytui.errors import DeployError
from deploytui.load.orders import LoadOrder, Ready, Report, Snapshot, Trouble, said_decoder
from deploytui.run.children import lines, tell, unwrapped
from deploytui.run.spares import LAST_WORDS_S, Spares

AHEAD_NS = 10_000_000
"""How far ahead the common start of several workers is: each must have heard of it by then [ns]."""

Hear = Callable[[Snapshot], None]


async def run_load(orders: Sequence[LoadOrder], *, spares: Spares, hear: Hear) -> tuple[Report, ...]:
    """The report of each order's worker; `hear` gets the snapshots of all as one.

    Several workers begin at the same moment, when all are ready. On cancellation, or when one fails, the others are
    told to stop, and their finished requests are kept on disk.
    """
    crew = _Crew(orders, spares, hear)
    with unwrapped():
        async with anyio.create_task_group() as group:
            for place in range(len(orders)):
                group.start_soon(crew.work, place)
    return tuple(report for report in crew.reports if report is not None)


class _Crew:
    """Workers under way on one load."""

    def __init__(self, orders: Sequence[LoadOrder], spares: Spares, hear: Hear) -> None:
        together = len(orders) > 1
        self.reports: list[Report | None] = [None] * len(orders)
        self._orders = [replace(order, wait_for_start=True) for order in orders] if together else list(orders)
        self._spares = spares
        self._processes: dict[int, Process] = {}
        self._waiting = len(orders) if together else 0
        self._newest = Newest(len(orders), hear)

    async def work(self, place: int) -> None:
        """One worker, from its start to its report; raises DeployError."""
        async with self._spares.worker() as worker:
            self._processes[place] = worker
            await tell(worker, msgspec.json.encode(self._orders[place]))
            async for line in lines(worker):
                match said_decoder.decode(line):
                    case Ready():
                        await self._one_more_ready()
                    case Snapshot() as snapshot:
                        self._newest.take(place, snapshot)
                    case Report() as report:
                        await self._ended(place, report)
                        return
                    case Trouble(what=what, why=why, fix=fix):
                        raise DeployError(what, why=why, fix=fix)
            raise await _lost(worker, self._spares.errors)

    async def _one_more_ready(self) -> None:
        if not self._waiting:
            return
        self._waiting -= 1
        if not self._waiting:
            start = msgspec.json.encode({"do": "start", "at_ns": time.monotonic_ns() + AHEAD_NS})
            for process in self._processes.values():
                await tell(process, start)

    async def _ended(self, place: int, report: Report) -> None:
        """A load that one worker ends because too many requests fail is over for all."""
        self.reports[place] = report
        self._newest.leave_out(place)
        if report.stopped == "errors":
            stop = msgspec.json.encode({"do": "stop", "why": "errors"})
            for other, process in self._processes.items():
                if self.reports[other] is None:
                    await tell(process, stop)


class Newest:
    """The newest snapshot of each worker, told as one whenever all have said something new.

    Telling it oftener would mix stretches of different lengths into the rates.
    """

    def __init__(self, workers: int, hear: Hear) -> None:
        self._hear = hear
        self._held: list[Snapshot | None] = [None] * workers
        self._due = set(range(workers))
        self._awaited = set(range(workers))

    def take(self, place: int, snapshot: Snapshot) -> None:
        """A worker's newest figures."""
        self._held[place] = snapshot
        self._awaited.discard(place)
        self._tell()

    def leave_out(self, place: int) -> None:
        """A worker that says nothing more; its last figures stay in the sums."""
        self._due.discard(place)
        if place in self._awaited:
            self._awaited.discard(place)
            self._tell()

    def _tell(self) -> None:
        held = [snapshot for snapshot in self._held if snapshot is not None]
        if not self._awaited and held:
            self._awaited = set(self._due)
            self._hear(merged(held))


def merged(snapshots: Sequence[Snapshot]) -> Snapshot:
    """The snapshots of several workers as one: their sums, at the time of the newest."""
    rows = [msgspec.structs.asdict(snapshot) for snapshot in snapshots]
    sums = {name: sum(row[name] for row in rows) for name in rows[0]}
    return Snapshot(**{**sums, "at_ns": max(snapshot.at_ns for snapshot in snapshots)})


async def _lost(worker: Process, errors: Path) -> DeployError:
    """What to say of a worker that ended before its report."""
    with anyio.move_on_after(LAST_WORDS_S):
        await worker.wait()
    return DeployError(
        f"The load worker ended with status {worker.returncode} before its report.",
        why=_last_line(errors),
        fix="The whole text is in workers.log of the session.",
    )


def _last_line(path: Path) -> str:
    found = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return found[-1] if found else ""
