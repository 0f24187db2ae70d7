"""What the load workers themselves may have added to a repeat, and whether it is too much to judge a server by."""

from collections.abc import Iterable, Iterator, Sequence

from deploytui.definitions import percentile
from deploytui.load.kernel_clock import KERNEL, USER
from deploytui.load.orders import Report
from deploytui.record.columns import RequestColumns
from deploytui.record.gaps import Gaps, median_step_s
from deploytui.record.measured import ToolError
from deploytui.record.tool import one_word, worst

CLIENT_BOUND_CPU = 0.9
CLIENT_BOUND_LAG = 0.05
"""Share of the median gap between chunks that lag p99 may reach where the worker stamps the chunks itself."""
LAG_ALWAYS_ALLOWED_MS = 1.0
"""The least lag that counts: an idle event loop's timers are that late, since asyncio rounds them up to whole
milliseconds. It matters for gaps under 20 ms only; a busy node's scheduler is later, a few ms, and is let by where 5 %
of the gap is as much."""
CLIENT_BOUND_READS = 0.01
"""Share of reads in which chunks may meet because they were read late; each takes the stamps of all chunks but one."""
FEWEST_READS = 10
"""Fewer such reads than this are the chance of a small load, whatever their share."""
CLIENT_BOUND_SENDS = 0.01
"""Share of an open loop's requests that may leave late, where the latest is late by `CLIENT_BOUND_LAG` of the median
TTFT: less moves neither the arrivals nor a latency by what anyone can see."""


FEWEST_SENDS = 3
"""As many late requests, or fewer, are the chance of a small load, whatever their share."""


def tool_error(reports: Sequence[Report], requests: RequestColumns, gaps: Gaps) -> ToolError:
    """The tool's own error over all workers of a repeat: the worst lag and CPU, the reads and sends of all."""
    grounds = list(_grounds(reports, requests, gaps))
    reads = sum(report.reads for report in reports)
    return ToolError(
        clock=one_word((report.clock for report in reports), USER),
        path=one_word((report.path for report in reports), "tcp"),
        lag_ms_p50=worst(report.lag_ms_p50 for report in reports),
        lag_ms_p99=worst(report.lag_ms_p99 for report in reports),
        lag_ms_max=worst(report.lag_ms_max for report in reports),
        multi_chunk_read_share=requests.multi_chunk_reads / requests.reads if requests.reads else None,
        extra_multi_chunk_read_share=_extra(reports) / reads if reads else None,
        late_sends=sum(report.late_sends for report in reports),
        late_send_ms_max=worst(report.late_send_ms_max for report in reports),
        workers=len(reports),
        worker_cpu_share=worst(report.cpu_share for report in reports),
        worker_cpu_shares=tuple(report.cpu_share for report in reports),
        clock_jumps=sum(report.clock_jumps for report in reports),
        client_bound=bool(grounds),
        client_bound_why=f"{'; '.join(grounds)}: {_remedy(len(reports))}" if grounds else "",
    )


def _grounds(reports: Sequence[Report], requests: RequestColumns, gaps: Gaps) -> Iterator[str]:
    """What shows that the workers were the limit."""
    cpu = worst(report.cpu_share for report in reports)
    if cpu is not None and cpu > CLIENT_BOUND_CPU:
        yield f"a load worker used {cpu:.0%} of a core"
    if any(report.clock != KERNEL for report in reports):
        yield from _lagged(reports, requests, gaps)
    reads = sum(report.reads for report in reports)
    if _extra(reports) > max(CLIENT_BOUND_READS * reads, FEWEST_READS):
        yield f"chunks that came apart met in {_extra(reports) / reads:.1%} of the reads, which were late"
    yield from _sent_late(reports, requests)


def _lagged(reports: Sequence[Report], requests: RequestColumns, gaps: Gaps) -> Iterator[str]:
    """Without the kernel's stamps, lag moves every stamp."""
    lag_ms = worst(report.lag_ms_p99 for report in reports if report.clock != KERNEL)
    gap_s, ttft_s = median_step_s([gaps]), _median_ttft_s(requests)
    measured_s, what = (ttft_s, "TTFT") if gap_s is None else (gap_s, "gap")
    if lag_ms is None or measured_s is None:
        return
    if lag_ms > max(LAG_ALWAYS_ALLOWED_MS, 1e3 * CLIENT_BOUND_LAG * measured_s):
        share = f"{lag_ms / 1e3 / measured_s:.0%} of" if measured_s > 0 else "more than"
        yield f"lag p99 {lag_ms:.3g} ms is {share} the median {what} of {1e3 * measured_s:.3g} ms"


def _sent_late(reports: Sequence[Report], requests: RequestColumns) -> Iterator[str]:
    late = sum(report.late_sends for report in reports)
    worst_ms, ttft_s = worst(report.late_send_ms_max for report in reports), _median_ttft_s(requests)
    if late <= max(CLIENT_BOUND_SENDS * requests.requests, FEWEST_SENDS):
        return
    if worst_ms is None or ttft_s is None or worst_ms > 1e3 * CLIENT_BOUND_LAG * ttft_s:
        latest = "" if worst_ms is None else f", the latest by {worst_ms:.3g} ms"
        yield f"{late} of {requests.requests} requests were sent late{latest}"


def _remedy(workers: int) -> str:
    return f"give load_workers = {workers + 1}, or run from a quieter machine"


def _extra(reports: Iterable[Report]) -> int:
    return sum(report.extra_multi_chunk_reads for report in reports)


def _median_ttft_s(requests: RequestColumns) -> float | None:
    return percentile(sorted(requests.known("ttft")), 50)
