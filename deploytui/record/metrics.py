"""From request records to the numbers of a repeat, or of all repeats of a candidate at one point."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import dist, fsum, sqrt
from typing import TypeVar

from deploytui.definitions import PERCENTILES, percentile, samples_needed, wilson
from deploytui.profile.schema import Gates
from deploytui.record.columns import LATENCIES, RequestColumns
from deploytui.record.facts import Distribution, Share
from deploytui.record.gaps import Gaps, ListedGaps, burst_share, gap_distribution
from deploytui.record.measured import Metrics, Spread, ToolError
from deploytui.record.quantile import order_interval
from deploytui.record.rates import full_window, request_limits
from deploytui.record.tool import worst_tool
from deploytui.record.trace import RequestRecord
from deploytui.units import NS

BOUNDED = ("ttft", "tpot", "e2e")
"""Metrics that gates rest on and whose percentiles therefore get an interval."""
NOTHING_TOLD = ToolError()

Key = TypeVar("Key")


@dataclass
class RepeatSample:
    """What one repeat showed, from all its load workers together."""

    requests: RequestColumns
    gaps: Gaps = field(default_factory=ListedGaps)
    """Between generated chunks of its successful requests."""
    tool: ToolError = NOTHING_TOLD


def sample_of(
    records: Sequence[RequestRecord], gaps_s: Iterable[float] = (), tool: ToolError = NOTHING_TOLD
) -> RepeatSample:
    """The sample of records that are at hand, with the gaps between their chunks [s]."""
    requests = RequestColumns()
    requests.add(records)
    return RepeatSample(requests, ListedGaps(round(gap / NS) for gap in gaps_s), tool)


def distribution(values: Iterable[float]) -> Distribution:
    """The distribution of values in their own unit; a percentile with too few samples is None, std (n-1) under 2."""
    return _described(sorted(values))


def _described(ordered: list[float]) -> Distribution:
    n = len(ordered)
    if n == 0:
        return Distribution(n=0)
    ranks = {name: percentile(ordered, q) if n >= samples_needed(name) else None for name, q in PERCENTILES.items()}
    mean = fsum(ordered) / n
    spread = dist(ordered, [mean] * n) / sqrt(n - 1) if n > 1 else None
    return Distribution(n=n, mean=mean, std=spread, min=ordered[0], max=ordered[-1], **ranks)


def share(hits: int, n: int) -> Share:
    """The share with its 95 % Wilson interval; all None but n when n is 0."""
    interval = wilson(hits, n)
    if interval is None:
        return Share(value=None, n=0, low=None, high=None)
    return Share(value=hits / n, n=n, low=interval[0], high=interval[1])


def measure(
    records: Sequence[RequestRecord],
    *,
    gaps_s: Sequence[float],
    asked_tokens: int | None,
    target_concurrency: int | None,
    gates: Gates | None,
    tool: ToolError,
) -> Metrics:
    """The numbers of one repeat whose records are at hand."""
    sample = sample_of(records, gaps_s, tool)
    return measure_many((sample,), asked_tokens=asked_tokens, target_concurrency=target_concurrency, gates=gates)


def measure_many(
    samples: Sequence[RepeatSample],
    *,
    asked_tokens: int | None,
    target_concurrency: int | None,
    gates: Gates | None,
) -> Metrics:
    """The numbers of all repeats together: latencies pooled, rates over the sum of the repeats' own durations, so that
    no pause between repeats counts. `asked_tokens` is the length of the requests that have none of their own, None
    where all have. `target_concurrency` None: an open loop, which has no steady window.
    """
    rows = [sample.requests for sample in samples]
    gaps = [sample.gaps for sample in samples]
    figures, bounds = _latencies(rows)
    duration = _duration_s(rows)
    ok = sum(row.ok for row in rows)
    return Metrics(
        requests=sum(row.requests for row in rows),
        ok=ok,
        duration_s=duration,
        ttfr=figures["ttfr"],
        ttft=figures["ttft"],
        ttfo=figures["ttfo"],
        tpot=figures["tpot"],
        icl=gap_distribution(gaps),
        e2e=figures["e2e"],
        ttft_scheduled=_unless_empty(figures["ttft_scheduled"]),
        e2e_scheduled=_unless_empty(figures["e2e_scheduled"]),
        connect=figures["connect"],
        bounds=bounds,
        tokens_per_chunk=_ratio(sum(row.chunk_tokens for row in rows), sum(row.chunks for row in rows)),
        output_tok_s=_rate(_output_tokens(rows), duration),
        steady_output_tok_s=_steady(rows, target_concurrency),
        request_s=_rate(ok, duration),
        goodput=_goodput(rows, duration, gates),
        success_rate=share(ok, sum(row.attempted for row in rows)),
        prompt_tokens=_spread(_sum(row.prompt_tokens for row in rows)),
        output_tokens=_spread(_answered(rows)),
        short_outputs=sum(_short(row, asked_tokens) for row in rows),
        cached_tokens=_known_sum(row.cached_tokens for row in rows),
        burst_share=burst_share(gaps),
        errors=dict(_sum(row.errors for row in rows)),
        flags=dict(_sum(row.flags for row in rows)),
        tool=worst_tool([sample.tool for sample in samples]),
    )


def _latencies(rows: Sequence[RequestColumns]) -> tuple[dict[str, Distribution], dict[str, tuple[float, float]]]:
    """Each latency's distribution, and the order-statistic intervals of the gated ones; one at a time, for memory."""
    figures, bounds = {}, {}
    for name in LATENCIES:
        ordered = sorted(chain.from_iterable(row.known(name) for row in rows))
        figures[name] = _described(ordered)
        bounds.update(_bounds(name, ordered) if name in BOUNDED else {})
    return figures, bounds


def _unless_empty(figures: Distribution) -> Distribution | None:
    return figures if figures.n else None


def _bounds(latency: str, ordered: list[float]) -> dict[str, tuple[float, float]]:
    """The order-statistic intervals [s] of the percentiles that have their samples."""
    return {
        f"{latency}.{name}": interval
        for name, q in PERCENTILES.items()
        if len(ordered) >= samples_needed(name) and (interval := order_interval(ordered, q)) is not None
    }


def _duration_s(rows: Sequence[RequestColumns]) -> float | None:
    """From first send to last completion, summed over the repeats [s]; None when nothing was completed."""
    spans = [
        row.completed_ns - row.begin_ns for row in rows if row.completed_ns is not None and row.begin_ns is not None
    ]
    return sum(spans) * NS if spans else None


def _rate(count: float | None, seconds: float | None) -> float | None:
    return None if count is None or not seconds else count / seconds


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _output_tokens(rows: Sequence[RequestColumns]) -> int | None:
    """Of all successful requests; None when any is unknown, since a part left out would read as slowness, and None
    without a success.
    """
    if not any(row.ok for row in rows) or any(row.uncounted for row in rows):
        return None
    return sum(count * times for count, times in _answered(rows).items())


def _answered(rows: Sequence[RequestColumns]) -> Counter[int]:
    """How many successful requests gave each number of output tokens."""
    total: Counter[int] = Counter()
    for row in rows:
        for (_, count), times in row.lengths.items():
            total[count] += times
    return total


def _steady(rows: Sequence[RequestColumns], target: int | None) -> float | None:
    """Output tokens per second while the load was full; None when it never was or a count is unknown."""
    if target is None or _output_tokens(rows) is None:
        return None
    parts = list(_steady_parts(rows, target))
    return _rate(fsum(tokens for tokens, _ in parts), fsum(seconds for _, seconds in parts))


def _steady_parts(rows: Sequence[RequestColumns], target: int) -> Iterator[tuple[float, float]]:
    for row in rows:
        # What a request that was cut off had generated is unknown: from its send on the rate would read too low.
        window = full_window(row.sent_ns, row.end_ns, target, until_ns=row.cut_sent_ns)
        tokens = window.tokens(zip(row.first_token_ns, row.last_token_ns, row.tokens, strict=True))
        yield tokens, window.length_ns * NS


def _goodput(rows: Sequence[RequestColumns], duration: float | None, gates: Gates | None) -> float | None:
    limits = request_limits(gates)
    good = [row.good(limits) for row in rows] if limits.asked else [None]
    return None if None in good else _rate(sum(count for count in good if count is not None), duration)


def _spread(counts: Mapping[int, int]) -> Spread:
    n = sum(counts.values())
    if n == 0:
        return Spread(n=0)
    values = sorted(counts)
    middle = (_at(counts, values, (n - 1) // 2) + _at(counts, values, n // 2)) / 2
    mean = sum(value * times for value, times in counts.items()) / n
    return Spread(n=n, min=values[0], median=middle, mean=mean, max=values[-1])


def _at(counts: Mapping[int, int], values: Sequence[int], rank: int) -> int:
    """The value at a rank, counted from 0, of all values in a row."""
    for value in values:
        rank -= counts[value]
        if rank < 0:
            return value
    raise IndexError(rank)


def _short(row: RequestColumns, asked_tokens: int | None) -> int:
    """Replies that ended before the asked length; by their finish reason where their tokens are unknown."""
    asked = ((asked_tokens if own is None else own, count, times) for (own, count), times in row.lengths.items())
    return row.uncounted_stops + sum(times for wanted, count, times in asked if wanted is not None and count < wanted)


def _sum(parts: Iterable[Counter[Key]]) -> Counter[Key]:
    total: Counter[Key] = Counter()
    for part in parts:
        total.update(part)
    return total


def _known_sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
