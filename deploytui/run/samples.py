"""From a repeat's files to the sample its metrics are computed from."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec

from deploytui.definitions import ttft
from deploytui.load.orders import LoadOrder, Report
from deploytui.load.stamps import unpack_stamps
from deploytui.load.wire import KERNEL
from deploytui.record.measured import ToolError
from deploytui.record.metrics import RepeatSample
from deploytui.record.trace import RequestRecord
from deploytui.units import NS

CLIENT_BOUND_CPU = 0.9
CLIENT_BOUND_LAG = 0.05
"""Share of the median TTFT that the worker's own lag may reach; TPOT divides it by the tokens, so it bears more."""
LAG_ALWAYS_ALLOWED_MS = 5.0
"""Below this the scheduler of any busy node is, and no gate of a served model."""
MERGED_READS = 0.01
"""Share of reads that may hold several chunks while the worker lags; beyond, chunks have lost their stamps."""

_decoder = msgspec.json.Decoder(RequestRecord)


def read_records(path: Path) -> list[RequestRecord]:
    """The requests of a records file; an unfinished last line is left out."""
    whole = path.read_bytes().rpartition(b"\n")[0]
    return [_decoder.decode(line) for line in whole.split(b"\n") if line]


def repeat_sample(order: LoadOrder, report: Report) -> RepeatSample:
    """The raw records of a finished repeat, its chunk gaps, and what the tool itself may have added."""
    records = read_records(Path(order.records))
    ok = {record.id for record in records if record.ok}
    stamps = dict(unpack_stamps(Path(order.stamps).read_bytes()))
    gaps = [gap for id_, own in stamps.items() if id_ in ok for gap in _gaps(own)]
    return RepeatSample(records=records, gaps_s=gaps, tool=_tool_error(report, records, gaps))


def _gaps(stamps: Sequence[int]) -> list[float]:
    return [(later - earlier) * NS for earlier, later in pairwise(stamps)]


def _tool_error(report: Report, records: Sequence[RequestRecord], gaps_s: Sequence[float]) -> ToolError:
    return ToolError(
        clock=report.clock,
        lag_ms_p99=report.lag_ms_p99,
        lag_ms_max=report.lag_ms_max,
        multi_chunk_read_share=_merged_share(records),
        worker_cpu_share=report.cpu_share,
        clock_jumps=report.clock_jumps,
        client_bound=_is_client_bound(report, records, gaps_s),
    )


def _merged_share(records: Sequence[RequestRecord]) -> float | None:
    """Share of reads in which several generated chunks share a stamp; None of no reads."""
    reads = sum(record.reads for record in records)
    return sum(record.multi_chunk_reads for record in records) / reads if reads else None


def _is_client_bound(report: Report, records: Sequence[RequestRecord], gaps_s: Sequence[float]) -> bool:
    """Whether the load worker itself was too slow for its stamps to be believed."""
    if report.cpu_share is not None and report.cpu_share > CLIENT_BOUND_CPU:
        return True
    lag_ms = report.lag_ms_p99 or 0.0
    if report.clock == KERNEL:
        # No lag moves a stamp of the kernel; but a worker that reads late finds chunks merged, with one stamp for all.
        merged = (_merged_share(records) or 0.0) > MERGED_READS
        return merged and bool(gaps_s) and lag_ms > max(LAG_ALWAYS_ALLOWED_MS, 1e3 * median(gaps_s))
    waits = [wait for record in records if (wait := ttft(record.sent_ns, record.first_token_ns)) is not None]
    return bool(waits) and lag_ms > max(LAG_ALWAYS_ALLOWED_MS, CLIENT_BOUND_LAG * 1e3 * median(waits))


def first_error(samples: Sequence[RepeatSample]) -> str:
    """What the first failed request was answered; empty when none failed."""
    errors = (record.error or record.error_kind or "" for s in samples for record in s.records if not record.ok)
    return next(errors, "")
