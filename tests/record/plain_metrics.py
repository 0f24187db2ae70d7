"""The figures of repeats, written down as their definitions say: slow, with every value in a list."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import Any, NamedTuple

from deploytui.definitions import PERCENTILES, percentile, samples_needed, tpot, ttft
from deploytui.record.quantile import order_interval
from deploytui.record.trace import RequestRecord
from deploytui.units import NS


class Repeat(NamedTuple):
    """All requests of a repeat, and the stamps of their chunks by id."""

    records: Sequence[RequestRecord]
    stamps: dict[int, list[int]]


def described(values: Sequence[float]) -> dict[str, float | None]:
    """A distribution by statistic."""
    ordered = sorted(values)
    if not ordered:
        return {"n": 0}
    ranks = {
        name: percentile(ordered, q) if len(ordered) >= samples_needed(name) else None
        for name, q in PERCENTILES.items()
    }
    spread = stdev(ordered) if len(ordered) > 1 else None
    return {"n": len(ordered), "mean": fmean(ordered), "std": spread, "min": ordered[0], "max": ordered[-1], **ranks}


def gaps_of(repeats: Sequence[Repeat]) -> list[float]:
    """The gaps between chunks of successful requests [s]."""
    ok = [(repeat, record.id) for repeat in repeats for record in repeat.records if record.ok]
    return [
        (later - earlier) * NS for repeat, number in ok for earlier, later in pairwise(repeat.stamps.get(number, []))
    ]


def figures(repeats: Sequence[Repeat], asked: int | None) -> dict[str, Any]:
    """What can be told without a target or a gate."""
    records = [record for repeat in repeats for record in repeat.records]
    done = [record for record in records if record.ok]
    tokens = [record.output_tokens for record in done]
    duration = duration_s(repeats)
    gaps = gaps_of(repeats)
    chunked = [record for record in done if record.output_tokens is not None and record.chunks > 0]
    return {
        **{name: described(values) for name, values in latencies(done).items()},
        "icl": described(gaps),
        "burst_share": sum(gap < 0.2e-3 for gap in gaps) / len(gaps) if gaps else None,
        "bounds": bounds(latencies(done)),
        "requests": len(records),
        "ok": len(done),
        "duration_s": duration,
        "output_tok_s": sum(t or 0 for t in tokens) / duration if duration and tokens and None not in tokens else None,
        "request_s": len(done) / duration if duration else None,
        "attempted": sum(record.error_kind != "cut_off" for record in records),
        "prompt_tokens": spread([record.prompt_tokens for record in done if record.prompt_tokens is not None]),
        "output_tokens": spread([count for count in tokens if count is not None]),
        "short_outputs": sum(is_short(record, asked) for record in done),
        "tokens_per_chunk": sum(r.output_tokens or 0 for r in chunked) / sum(r.chunks for r in chunked)
        if chunked
        else None,
    }


def latencies(done: Sequence[RequestRecord]) -> dict[str, list[float]]:
    """Each latency of the successful requests that have it [s]."""
    every: dict[str, list[float | None]] = {
        "ttfr": [ttft(r.sent_ns, r.first_chunk_ns) for r in done],
        "ttft": [ttft(r.sent_ns, r.first_token_ns) for r in done],
        "ttfo": [ttft(r.sent_ns, r.first_content_ns) for r in done],
        "tpot": [tpot(r.first_token_ns, r.last_token_ns, r.output_tokens) for r in done],
        "e2e": [ttft(r.sent_ns, r.end_ns) for r in done],
        "connect": [None if r.connect_ns is None else r.connect_ns * NS for r in done],
        "ttft_scheduled": [ttft(r.scheduled_ns, r.first_token_ns) for r in done if r.scheduled_ns is not None],
        "e2e_scheduled": [ttft(r.scheduled_ns, r.end_ns) for r in done if r.scheduled_ns is not None],
    }
    return {name: [value for value in values if value is not None] for name, values in every.items()}


def bounds(values: dict[str, list[float]]) -> dict[str, tuple[float, float] | None]:
    """The intervals of the percentiles that have their samples."""
    return {
        f"{metric}.{name}": order_interval(sorted(values[metric]), q)
        for metric in ("ttft", "tpot", "e2e")
        for name, q in PERCENTILES.items()
        if len(values[metric]) >= samples_needed(name) and values[metric]
    }


def duration_s(repeats: Sequence[Repeat]) -> float | None:
    """From first send to last completion, summed over the repeats [s]."""
    spans = [
        max(record.end_ns for record in repeat.records if record.error_kind != "cut_off")
        - min(record.sent_ns for record in repeat.records)
        for repeat in repeats
        if any(record.error_kind != "cut_off" for record in repeat.records)
    ]
    return sum(spans) * NS if spans else None


def steady_tok_s(repeats: Sequence[Repeat], target: int) -> float | None:
    """Output tokens per second while at least 90 % of `target` were active, instant by instant."""
    tokens = seconds = 0.0
    for records, _ in repeats:
        cut = [record.sent_ns for record in records if record.error_kind == "cut_off"]
        until = min(cut, default=2**62)
        times = sorted({at for record in records for at in (record.sent_ns, record.end_ns)} | set(cut))
        full = [
            (begin, end)
            for begin, end in pairwise(times)
            if end <= until and sum(r.sent_ns <= begin and r.end_ns >= end for r in records) >= 0.9 * target
        ]
        seconds += sum(end - begin for begin, end in full) * NS
        tokens += sum(tokens_in(record, full) for record in records if record.ok)
    return tokens / seconds if seconds else None


def tokens_in(record: RequestRecord, full: Sequence[tuple[int, int]]) -> float:
    """The first token where it came, the others spread evenly up to the last."""
    first, count = record.first_token_ns, record.output_tokens or 0
    if first is None or count == 0:
        return 0.0
    last = first if record.last_token_ns is None else record.last_token_ns
    held = any(begin <= first <= end for begin, end in full)
    if last <= first:
        return count * held
    common = sum(max(0, min(last, end) - max(first, begin)) for begin, end in full)
    return (count - 1) * common / (last - first) + held


def spread(counts: Sequence[int]) -> dict[str, float | None]:
    """Smallest, middle, mean and largest."""
    if not counts:
        return {"n": 0}
    return {
        "n": len(counts),
        "min": min(counts),
        "median": float(median(counts)),
        "mean": fmean(counts),
        "max": max(counts),
    }


def is_short(record: RequestRecord, asked: int | None) -> bool:
    """Whether the reply ended before the asked length."""
    wanted = asked if record.asked_tokens is None else record.asked_tokens
    if record.output_tokens is None:
        return record.finish_reason == "stop"
    return wanted is not None and record.output_tokens < wanted
