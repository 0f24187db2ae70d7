"""What a self-test found: a row for each number of streams, its verdict, and what it comes to. Pure."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from deploytui.record.measured import ToolError
from deploytui.run.selftest_truth import Joined, quantile

GOOD_ITL_ERROR_US = 1000.0
"""A load path is good where the p99 of its ITL error is below this [us]."""
PACE_KEPT = 0.95
"""Share of its schedule that the server must have sent for the row to be what its heading says."""
EVEN_SHARE = 0.5
"""By how much of the ITL the server's gaps may be off at the p99: a server that stalled sends tokens in heaps, which
any client gets in one read."""

Verdict = Literal["good", "not good", "server late", "not measured"]


class Row(Struct, frozen=True, kw_only=True):
    """One number of streams; None for what was not measured, or has too few samples."""

    streams: int
    workers: int
    verdict: Verdict
    why: str = ""
    """What a verdict other than `good` rests on."""
    requests: int = 0
    """Whose stamps could be joined with the server's."""
    failed: int = 0
    tokens: int = 0
    ttft_error_us_p50: float | None = None
    ttft_error_us_p99: float | None = None
    itl_error_us_p50: float | None = None
    itl_error_us_p99: float | None = None
    itl_error_us_max: float | None = None
    extra_multi_chunk_read_share: float | None = None
    lag_ms_p99: float | None = None
    worker_cpu_share: float | None = None
    """The busiest worker's share of a core."""
    cpu_us_per_token: float | None = None
    """Of all workers, while the load ran."""
    client_bound: bool = False
    server_late_us_p99: float | None = None
    """How late the server sent, by its own schedule; no error of the client."""
    server_pace: float | None = None
    """Tokens a second as sent, against the schedule."""
    server_off_us_p99: float | None = None
    """How far the gaps it sent were from the schedule's ITL."""
    server_cpu_s: float | None = None
    clock: str | None = None
    path: str | None = None


class SelfTest(Struct, frozen=True, kw_only=True):
    """The whole self-test; nothing in it was measured on an engine."""

    simulated: bool = True
    version: str
    itl_ms: float
    tokens: int
    """Of each request; every stream sends one."""
    tls: bool
    workers: int
    pinned: bool
    """Whether server and load had cores of their own."""
    cores: int
    good_for: int | None
    """Most streams that were measured good; None when no number was."""
    sentence: str
    rows: tuple[Row, ...]


class ServerSaid(Struct, frozen=True, kw_only=True):
    """What the server said of itself."""

    late_us_p99: float | None
    cpu_s: float | None


def measured_row(
    *,
    streams: int,
    workers: int,
    itl_ms: float,
    failed: int,
    joined: Joined,
    tool: ToolError,
    cpu_s: float | None,
    server: ServerSaid,
) -> Row:
    """The row of a load that ran; `cpu_s` is what its workers used meanwhile."""
    p99 = quantile(joined.itl_error_us, 99)
    verdict, why = _verdict(failed, joined, tool, p99, itl_ms)
    return Row(
        streams=streams,
        workers=workers,
        verdict=verdict,
        why=why,
        requests=joined.requests,
        failed=failed,
        tokens=joined.tokens,
        ttft_error_us_p50=quantile(joined.ttft_error_us, 50),
        ttft_error_us_p99=quantile(joined.ttft_error_us, 99),
        itl_error_us_p50=quantile(joined.itl_error_us, 50),
        itl_error_us_p99=p99,
        itl_error_us_max=joined.itl_error_us[-1] if joined.itl_error_us else None,
        extra_multi_chunk_read_share=tool.extra_multi_chunk_read_share,
        lag_ms_p99=tool.lag_ms_p99,
        worker_cpu_share=tool.worker_cpu_share,
        cpu_us_per_token=cpu_s * 1e6 / joined.tokens if cpu_s is not None and joined.tokens else None,
        client_bound=tool.client_bound,
        server_late_us_p99=server.late_us_p99,
        server_pace=joined.pace,
        server_off_us_p99=quantile(joined.server_off_us, 99),
        server_cpu_s=server.cpu_s,
        clock=tool.clock,
        path=tool.path,
    )


def unmeasured_row(streams: int, workers: int, why: str) -> Row:
    """The row of a load that did not run."""
    return Row(streams=streams, workers=workers, verdict="not measured", why=why)


def _verdict(failed: int, joined: Joined, tool: ToolError, p99_us: float | None, itl_ms: float) -> tuple[Verdict, str]:
    """In this order: is there evidence, was the load what it should be, did the client keep up."""
    if failed or joined.left_out:
        count = max(failed, joined.left_out)
        return "not measured", f"{count} requests failed, or were known to one side only"
    if p99_us is None:
        return "not measured", "too few tokens for a p99"
    if late := _server_late(joined, itl_ms):
        return "server late", late
    if tool.client_bound:
        return "not good", f"client_bound: {tool.client_bound_why}" if tool.client_bound_why else "client_bound"
    if p99_us >= GOOD_ITL_ERROR_US:
        return "not good", f"ITL error p99 {p99_us / 1e3:.1f} ms"
    return "good", ""


def _server_late(joined: Joined, itl_ms: float) -> str:
    """Why the row can't be held against the client; empty when the server did what it should."""
    if joined.pace is not None and joined.pace < PACE_KEPT:
        return f"the test's own server sent at {100 * joined.pace:.0f} % of its pace, so this says little of the client"
    off_us = quantile(joined.server_off_us, 99)
    if off_us is not None and off_us > EVEN_SHARE * itl_ms * 1e3:
        return (
            f"the test's own server stalled (gaps off by {off_us / 1e3:.0f} ms at the p99): try it on an idle machine"
        )
    return ""


def good_for(rows: Sequence[Row]) -> int | None:
    """The most streams that were measured good, with nothing smaller measured not good; None when there is no such."""
    bad = min((row.streams for row in rows if row.verdict == "not good"), default=None)
    good = [row.streams for row in rows if row.verdict == "good" and (bad is None or row.streams < bad)]
    return max(good, default=None)


def sentence(rows: Sequence[Row], *, itl_ms: float) -> str:
    """How many streams the load path of this machine is good for, and what was seen beyond."""
    best = good_for(rows)
    rest = "".join(f" At {row.streams:,}, {row.verdict}: {row.why}." for row in rows if row.verdict != "good")
    if best is None:
        return "How many streams the load path of this machine is good for was not found." + rest
    workers = next(row.workers for row in rows if row.streams == best)
    least = "at least " if not any(row.verdict == "not good" for row in rows) else ""
    load = f"{best:,} streams of a token each {itl_ms:g} ms"
    return f"This machine's load path is good for {least}{load}, with {_counted(workers)}.{rest}"


def _counted(workers: int) -> str:
    return "1 load worker" if workers == 1 else f"{workers} load workers"
