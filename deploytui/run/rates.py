"""Token rates between two snapshots of a load worker."""

from itertools import pairwise

from msgspec import Struct

from deploytui.load.orders import Snapshot
from deploytui.record.facts import Band
from deploytui.units import NS


class Rates(Struct, frozen=True, kw_only=True):
    """What a load did in an interval; None where it can't be told."""

    output_tok_s: Band | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None


def tokens_per_chunk(snapshot: Snapshot, known: float | None) -> float | None:
    """Tokens in a generated chunk, of the finished requests, else as known before; None when nobody told yet."""
    return snapshot.output_tokens / snapshot.finished_chunks if snapshot.finished_chunks else known


def rates(snapshots: list[Snapshot], per_chunk: float | None) -> Rates:
    """The rates over consecutive snapshots of one load; nothing of fewer than two."""
    if len(snapshots) < 2:
        return Rates()
    first, last = snapshots[0], snapshots[-1]
    ttft_n, tpot_n = last.ttft_n - first.ttft_n, last.tpot_n - first.tpot_n
    return Rates(
        output_tok_s=_band(snapshots, per_chunk),
        ttft_s=(last.ttft_sum_s - first.ttft_sum_s) / ttft_n if ttft_n else None,
        tpot_s=(last.tpot_sum_s - first.tpot_sum_s) / tpot_n if tpot_n else None,
    )


def _band(snapshots: list[Snapshot], per_chunk: float | None) -> Band | None:
    if per_chunk is None:
        return None
    steps = [
        (later.chunks - earlier.chunks) * per_chunk / ((later.at_ns - earlier.at_ns) * NS)
        for earlier, later in pairwise(snapshots)
        if later.at_ns > earlier.at_ns
    ]
    if not steps:
        return None
    seconds = (snapshots[-1].at_ns - snapshots[0].at_ns) * NS
    mean = (snapshots[-1].chunks - snapshots[0].chunks) * per_chunk / seconds
    return Band(min=min(steps), max=max(steps), last=mean)
