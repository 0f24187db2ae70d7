"""From a repeat's files to the sample its metrics are computed from."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec

from deploytui.definitions import ttft
from deploytui.load.orders import LoadOrder, Report
from deploytui.load.stamps import unpack_stamps
from deploytui.record.measured import ToolError
from deploytui.record.metrics import RepeatSample
from deploytui.record.trace import RequestRecord
from deploytui.units import NS

CLIENT_BOUND_CPU = 0.9
CLIENT_BOUND_LAG = 0.05
"""Share of the median TTFT that the worker's own lag may reach; TPOT divides it by the tokens, so it bears more."""
LAG_ALWAYS_ALLOWED_MS = 5.0
"""Below this the scheduler of any busy node is, and no gate of a served model."""

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
    return RepeatSample(records=records, gaps_s=gaps, tool=_tool_error(report, records))


def _gaps(stamps: Sequence[int]) -> list[float]:
    return [(later - earlier) * NS for earlier, later in pairwise(stamps)]


def _tool_error(report: Report, records: Sequence[RequestRecord]) -> ToolError:
    reads = sum(record.reads for record in records)
    shared = sum(record.multi_chunk_reads for record in records)
    return ToolError(
        clock=report.clock,
        lag_ms_p99=report.lag_ms_p99,
        lag_ms_max=report.lag_ms_max,
        multi_chunk_read_share=shared / reads if reads else None,
        worker_cpu_share=report.cpu_share,
        client_bound=_client_bound(report, records),
    )


def _client_bound(report: Report, records: Sequence[RequestRecord]) -> bool:
    """Whether the load worker itself was too slow for its stamps to be believed."""
    if report.cpu_share is not None and report.cpu_share > CLIENT_BOUND_CPU:
        return True
    waits = [wait for record in records if (wait := ttft(record.sent_ns, record.first_token_ns)) is not None]
    allowed = max(LAG_ALWAYS_ALLOWED_MS, CLIENT_BOUND_LAG * 1e3 * median(waits)) if waits else 0.0
    return bool(waits) and (report.lag_ms_p99 or 0.0) > allowed


def first_error(samples: Sequence[RepeatSample]) -> str:
    """What the first failed request was answered; empty when none failed."""
    errors = (record.error or record.error_kind or "" for s in samples for record in s.records if not record.ok)
    return next(errors, "")
