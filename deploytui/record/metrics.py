"""From request records to the numbers of a repeat, or of all repeats of a candidate at one point."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import fsum
from statistics import fmean, median, stdev

from msgspec import Struct

from deploytui.definitions import percentile, samples_needed, tpot, ttft, wilson
from deploytui.profile.schema import Gates
from deploytui.record.facts import Distribution, Share
from deploytui.record.measured import Metrics, Spread, ToolError
from deploytui.record.quantile import order_interval
from deploytui.record.rates import full_window, meets, request_limits, tokens_within
from deploytui.record.trace import RequestRecord
from deploytui.units import NS

BURST_GAP_S = 0.2e-3
"""Gaps between chunks under this [s] are no decode steps: the chunks left the server, or a buffer, together."""

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
BOUNDED = ("ttft", "tpot", "e2e")
"""Metrics that gates rest on and whose percentiles therefore get an interval."""


class RepeatSample(Struct, frozen=True, kw_only=True):
    """The raw records of one repeat. `gaps_s` are the gaps between generated chunks of its successful requests [s]."""

    records: Sequence[RequestRecord]
    gaps_s: Sequence[float] = ()
    tool: ToolError = ToolError()
    asked: Mapping[int, int] = {}
    """Asked output length by request id, where it differs from the workload's."""


def distribution(values: Iterable[float]) -> Distribution:
    """The distribution of values in their own unit; a percentile with too few samples is None, std (n-1) under 2."""
    return _described(sorted(values))


def _described(ordered: list[float]) -> Distribution:
    n = len(ordered)
    if n == 0:
        return Distribution(n=0)
    ranks = {name: percentile(ordered, q) if n >= samples_needed(name) else None for name, q in PERCENTILES.items()}
    spread = stdev(ordered) if n > 1 else None
    return Distribution(n=n, mean=fmean(ordered), std=spread, min=ordered[0], max=ordered[-1], **ranks)


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
    asked_tokens: int,
    target_concurrency: int | None,
    gates: Gates | None,
    tool: ToolError,
) -> Metrics:
    """The numbers of one repeat."""
    sample = RepeatSample(records=records, gaps_s=gaps_s, tool=tool)
    return measure_many((sample,), asked_tokens=asked_tokens, target_concurrency=target_concurrency, gates=gates)


def measure_many(
    samples: Sequence[RepeatSample],
    *,
    asked_tokens: int,
    target_concurrency: int | None,
    gates: Gates | None,
) -> Metrics:
    """The numbers of all repeats together: latencies pooled, rates over the sum of the repeats' own durations, so that
    no pause between repeats counts. `target_concurrency` None: an open loop, which has no steady window.
    """
    records = [record for sample in samples for record in sample.records]
    done = [record for record in records if record.ok]
    latencies = _latencies(done)
    gaps = sorted(chain.from_iterable(sample.gaps_s for sample in samples))
    duration = _duration_s(samples)
    tokens = _sum_known(record.output_tokens for record in done)
    cached = [record.cached_tokens for record in done if record.cached_tokens is not None]
    return Metrics(
        requests=len(records),
        ok=len(done),
        duration_s=duration,
        **{name: _described(values) for name, values in latencies.items()},
        icl=_described(gaps),
        bounds=_bounds(latencies),
        tokens_per_chunk=_tokens_per_chunk(done),
        output_tok_s=_rate(tokens, duration),
        steady_output_tok_s=_steady(samples, target_concurrency),
        request_s=_rate(len(done), duration),
        goodput=_goodput(records, duration, gates),
        success_rate=share(len(done), len(records)),
        prompt_tokens=_spread(record.prompt_tokens for record in done),
        output_tokens=_spread(record.output_tokens for record in done),
        short_outputs=sum(_short(r, s.asked.get(r.id, asked_tokens)) for s in samples for r in s.records if r.ok),
        cached_tokens=sum(cached) if cached else None,
        burst_share=sum(gap < BURST_GAP_S for gap in gaps) / len(gaps) if gaps else None,
        errors=dict(Counter(record.error_kind or "unknown" for record in records if not record.ok)),
        flags=dict(Counter(flag for record in records for flag in record.flags)),
        tool=_tool([sample.tool for sample in samples]),
    )


def _latencies(done: Sequence[RequestRecord]) -> dict[str, list[float]]:
    """Each latency of the successful requests [s], ascending; a request without it is left out."""
    return {
        "ttfr": _ascending(ttft(r.sent_ns, r.first_chunk_ns) for r in done),
        "ttft": _ascending(ttft(r.sent_ns, r.first_token_ns) for r in done),
        "ttfo": _ascending(ttft(r.sent_ns, r.first_content_ns) for r in done),
        "tpot": _ascending(tpot(r.first_token_ns, r.last_token_ns, r.output_tokens) for r in done),
        "e2e": _ascending((r.end_ns - r.sent_ns) * NS for r in done),
        "connect": _ascending(None if r.connect_ns is None else r.connect_ns * NS for r in done),
    }


def _ascending(values: Iterable[float | None]) -> list[float]:
    return sorted(value for value in values if value is not None)


def _bounds(latencies: Mapping[str, list[float]]) -> dict[str, tuple[float, float]]:
    """The order-statistic intervals [s] of the percentiles that have their samples."""
    return {
        f"{metric}.{name}": interval
        for metric in BOUNDED
        for name, q in PERCENTILES.items()
        if len(latencies[metric]) >= samples_needed(name)
        and (interval := order_interval(latencies[metric], q)) is not None
    }


def _duration_s(samples: Sequence[RepeatSample]) -> float | None:
    """From first send to last completion, summed over the repeats [s]; None of nothing."""
    spans = [
        max(record.end_ns for record in sample.records) - min(record.sent_ns for record in sample.records)
        for sample in samples
        if sample.records
    ]
    return sum(spans) * NS if spans else None


def _rate(count: float | None, seconds: float | None) -> float | None:
    return None if count is None or not seconds else count / seconds


def _sum_known(counts: Iterable[int | None]) -> int | None:
    """The sum; None when any part is unknown, since a part left out would read as slowness, and None of nothing."""
    parts = list(counts)
    known = [part for part in parts if part is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def _tokens_per_chunk(done: Sequence[RequestRecord]) -> float | None:
    known = [(r.output_tokens, r.chunks) for r in done if r.output_tokens is not None and r.chunks > 0]
    return sum(tokens for tokens, _ in known) / sum(chunks for _, chunks in known) if known else None


def _steady(samples: Sequence[RepeatSample], target: int | None) -> float | None:
    """Output tokens per second while the load was full; None when it never was or a count is unknown."""
    done = [record for sample in samples for record in sample.records if record.ok]
    if target is None or _sum_known(record.output_tokens for record in done) is None:
        return None
    parts = list(_steady_parts(samples, target))
    return _rate(fsum(tokens for tokens, _ in parts), fsum(seconds for _, seconds in parts))


def _steady_parts(samples: Sequence[RepeatSample], target: int) -> Iterator[tuple[float, float]]:
    for sample in samples:
        window = full_window(sample.records, target)
        yield fsum(tokens_within(r, window) for r in sample.records if r.ok), window.length_ns * NS


def _goodput(records: Sequence[RequestRecord], duration: float | None, gates: Gates | None) -> float | None:
    limits = request_limits(gates)
    if not limits.asked:
        return None
    met = [meets(record, limits) for record in records]
    return None if None in met else _rate(met.count(True), duration)


def _spread(counts: Iterable[int | None]) -> Spread:
    known = [count for count in counts if count is not None]
    if not known:
        return Spread(n=0)
    return Spread(n=len(known), min=min(known), median=float(median(known)), max=max(known))


def _short(record: RequestRecord, asked: int) -> bool:
    """Whether a reply ended before the asked length; by its finish reason where its tokens are unknown."""
    if record.output_tokens is None:
        return record.finish_reason == "stop"
    return record.output_tokens < asked


def _tool(errors: Sequence[ToolError]) -> ToolError:
    """The worst of the repeats."""
    clocks = sorted({error.clock for error in errors}) or [ToolError().clock]
    return ToolError(
        clock=clocks[0] if len(clocks) == 1 else "mixed",
        lag_ms_p99=_worst(error.lag_ms_p99 for error in errors),
        lag_ms_max=_worst(error.lag_ms_max for error in errors),
        multi_chunk_read_share=_worst(error.multi_chunk_read_share for error in errors),
        worker_cpu_share=_worst(error.worker_cpu_share for error in errors),
        clock_jumps=sum(error.clock_jumps for error in errors),
        client_bound=any(error.client_bound for error in errors),
    )


def _worst(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
