"""One row of the self-test: a load through the workers of every session, held against the server's truth."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from anyio import to_thread

from deploytui.errors import DeployError
from deploytui.load.orders import LoadOrder, Prompt, Report
from deploytui.load.stamps import RequestStamps, unpack_stamps
from deploytui.run.loads import run_load
from deploytui.run.paced import MODEL, PacedServer, Schedule, paced_server
from deploytui.run.samples import repeat_sample
from deploytui.run.selftest_cores import files_lacking
from deploytui.run.selftest_result import Row, ServerSaid, measured_row, unmeasured_row
from deploytui.run.selftest_truth import Joined, join, read_truth
from deploytui.run.spares import Spares
from deploytui.units import NS

REQUEST_S = 120.0
QUESTION = "How far is what this client stamps from what the server did?"


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How many streams, of how many tokens, by how many workers."""

    streams: int
    tokens: int
    itl_ms: float
    workers: int


async def measure(size: Size, schedule: Schedule, *, session: str, folder: Path) -> Row:
    """The row of one number of streams; one that says why where it could not be measured."""
    if lacking := files_lacking(size.streams):
        return unmeasured_row(size.streams, size.workers, lacking)
    try:
        async with paced_server(schedule, session=session, folder=folder) as server:
            orders = _orders(size, server, schedule, folder)
            reports = await run_load(orders, spares=Spares(session, folder / "workers.log"), hear=_nobody)
            said = await server.told_truth()
        return await to_thread.run_sync(_row, size, tuple(zip(orders, reports, strict=True)), server.truth, said)
    except DeployError as error:
        return unmeasured_row(size.streams, size.workers, " ".join(error.text().split("\n")).rstrip("."))


def _nobody(_: object) -> None:
    """Snapshots are for a screen."""


def _orders(size: Size, server: PacedServer, schedule: Schedule, folder: Path) -> list[LoadOrder]:
    prompts = folder / "prompts.jsonl"
    prompts.write_bytes(
        msgspec.json.Encoder().encode_lines([Prompt(id=k, prompt=QUESTION) for k in range(size.streams)])
    )
    scheme = "https" if schedule.certificate else "http"
    return [
        LoadOrder(
            base_url=f"{scheme}://127.0.0.1:{server.port}",
            endpoint="chat",
            model=MODEL,
            output_tokens=size.tokens,
            prompts=str(prompts),
            concurrency=len(range(shard, size.streams, size.workers)),
            shard=shard,
            shards=size.workers,
            request_timeout_s=REQUEST_S,
            records=str(folder / f"requests.w{shard}.jsonl"),
            stamps=str(folder / f"stamps.w{shard}.bin"),
        )
        for shard in range(size.workers)
    ]


def _row(size: Size, loads: Sequence[tuple[LoadOrder, Report]], truth: Path, said: ServerSaid) -> Row:
    return measured_row(
        itl_ms=size.itl_ms,
        streams=size.streams,
        workers=size.workers,
        failed=sum(report.requests - report.ok for _, report in loads),
        joined=_joined(truth, [Path(order.stamps) for order, _ in loads]),
        tool=repeat_sample(loads).tool,
        cpu_s=_cpu_s([report for _, report in loads]),
        server=said,
    )


def _joined(truth: Path, stamps: Sequence[Path]) -> Joined:
    with truth.open("rb") as file:
        itl_ns, sent = read_truth(file)
        return join(sent, _stamped(stamps), itl_ns)


def _stamped(paths: Sequence[Path]) -> Iterator[RequestStamps]:
    for path in paths:
        with path.open("rb") as file:
            yield from unpack_stamps(file)


def _cpu_s(reports: Sequence[Report]) -> float | None:
    """What the workers used while the load ran [s]; their start is no cost of a token."""
    used = [_used_s(report) for report in reports]
    return None if None in used else sum(one for one in used if one is not None)


def _used_s(report: Report) -> float | None:
    return None if report.cpu_share is None else report.cpu_share * (report.ended_ns - report.started_ns) * NS
