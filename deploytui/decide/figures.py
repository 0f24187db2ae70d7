"""A candidate's figures by metric name, with sample size and interval: what gates judge and the objective orders."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from deploytui.compare.statistics import Interval, mean_interval, repeat_interval, wider
from deploytui.decide.subject import Subject
from deploytui.definitions import samples_needed
from deploytui.record.facts import Distribution, Share
from deploytui.record.measured import Metrics
from deploytui.units import gib


class Figure(Struct, frozen=True, kw_only=True):
    """One number in the unit of its metric's name; `value` None when it was not measured, `why` says why not."""

    metric: str
    value: float | None = None
    n: int | None = None
    of: Literal["requests", "repeats", "items", "launches"] = "launches"
    """What n counts."""
    interval: Interval | None = None
    """Its high end may be infinite."""
    by_repeats: bool = False
    """Whether the interval comes from the spread between repeats."""
    proof: str = ""
    needed: int | None = None
    """Samples a percentile would need, when it has some but too few."""
    why: str = "it was not measured"


def figure(subject: Subject, metric: str) -> Figure:
    """The candidate's figure of a metric such as `ttft_ms.p95`, `output_tok_s` or `peak_gpu_gib`."""
    base, _, statistic = metric.partition(".")
    if base in _LATENCIES:
        found = _latency(subject, _LATENCIES[base], statistic)
    elif base in _RATES:
        found = _rate(subject, base)
    elif base in _OTHERS:
        found = _OTHERS[base](subject)
    else:
        found = Figure(metric=metric, why="nobody knows this metric")
    return replace(found, metric=metric)


_LATENCIES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "e2e"}
_RATES = ("output_tok_s", "request_s", "goodput")
_RATE_MISSING = {
    "output_tok_s": "the engine did not tell how many tokens every reply had",
    "goodput": "there is no max_ttft_ms, max_tpot_ms or max_e2e_ms to meet, or token counts are unknown",
}


def _latency(subject: Subject, name: str, statistic: str) -> Figure:
    """A statistic of a latency [ms]."""
    metrics = subject.metrics
    pooled: Distribution = Distribution(n=0) if metrics is None else getattr(metrics, name)
    value: float | None = getattr(pooled, statistic)
    if metrics is None or value is None:
        return Figure(metric=name, n=pooled.n, of="requests", needed=samples_needed(statistic) if pooled.n else None)
    own = (
        mean_interval(value, pooled.std, pooled.n) if statistic == "mean" else metrics.bounds.get(f"{name}.{statistic}")
    )
    between = _between(value, (getattr(getattr(repeat, name), statistic) for repeat in subject.repeats))
    widest = wider(own, between)
    return Figure(
        metric=name,
        value=value * 1e3,
        n=pooled.n,
        of="requests",
        interval=None if widest is None else (max(0.0, widest[0]) * 1e3, widest[1] * 1e3),
        by_repeats=widest is not None and widest == between,
        proof=_measured_proof(subject),
    )


def _rate(subject: Subject, name: str) -> Figure:
    """A rate [1/s], whose only interval is the spread between repeats."""
    value: float | None = None if subject.metrics is None else getattr(subject.metrics, name)
    if value is None:
        return Figure(metric=name, of="repeats", why=_RATE_MISSING.get(name, Figure(metric=name).why))
    between = _between(value, (getattr(repeat, name) for repeat in subject.repeats))
    return Figure(
        metric=name,
        value=value,
        n=len(subject.repeats),
        of="repeats",
        interval=None if between is None else (max(0.0, between[0]), between[1]),
        by_repeats=between is not None,
        proof=_measured_proof(subject),
    )


def _between(around: float, values: Iterable[float | None]) -> Interval | None:
    """The spread between repeats; None when a repeat is too short to have the figure itself."""
    each = list(values)
    known = [value for value in each if value is not None]
    return repeat_interval(known, around) if len(known) == len(each) else None


def _measured_proof(subject: Subject) -> str:
    at_point = (record for record in subject.seen.repeats if record.step.point == subject.point)
    records = [file.path for record in at_point for file in record.sidecars if "requests" in file.path]
    return "; ".join(("journal: measured", *records[:1], *(["…"] if len(records) > 1 else [])))


def _share(metric: str, share: Share | None, of: Literal["requests", "items"], proof: str) -> Figure:
    if share is None or share.value is None or share.low is None or share.high is None:
        return Figure(metric=metric, of=of)
    return Figure(metric=metric, value=share.value, n=share.n, of=of, interval=(share.low, share.high), proof=proof)


def _success_rate(subject: Subject) -> Figure:
    metrics: Metrics | None = subject.metrics
    return _share("success_rate", metrics.success_rate if metrics else None, "requests", _measured_proof(subject))


def _quality(subject: Subject) -> Figure:
    quality = subject.seen.quality
    return _share("quality", quality.score if quality else None, "items", "journal: task_done")


def _format(subject: Subject) -> Figure:
    quality = subject.seen.quality
    found = _share("format_pass_rate", quality.format_pass if quality else None, "items", "journal: task_done")
    return found if found.value is not None else replace(found, why="no quality item checks a form")


def _quality_drop(subject: Subject) -> Figure:
    """How far the score is below the baseline's; the interval takes both scores at their worst."""
    own, base = subject.seen.quality, subject.baseline.quality if subject.baseline else None
    if subject.baseline is not None and subject.baseline.name == subject.name:
        return Figure(metric="quality_drop", value=0.0, n=own.score.n if own else 0, of="items", proof="the baseline")
    mine = _share("quality", own.score if own else None, "items", "")
    theirs = _share("quality", base.score if base else None, "items", "")
    if mine.value is None or theirs.value is None or mine.interval is None or theirs.interval is None:
        return Figure(metric="quality_drop", of="items", why="the baseline's quality, or its own, was not measured")
    return Figure(
        metric="quality_drop",
        value=theirs.value - mine.value,
        n=mine.n,
        of="items",
        interval=(theirs.interval[0] - mine.interval[1], theirs.interval[1] - mine.interval[0]),
        proof="journal: task_done",
    )


def _single(metric: str, value: float | None, proof: str, why: str) -> Figure:
    return Figure(metric=metric, value=value, n=None if value is None else 1, proof=proof, why=why)


def _peak_gpu(subject: Subject) -> Figure:
    memory = subject.seen.memory
    environment = subject.state.environment
    absent = environment.gpu_missing if environment and not environment.gpus else None
    why = f"there is no GPU to read ({absent or 'none was found'})" if environment and not environment.gpus else ""
    value = gib(memory.peak_gpu_bytes) if memory else None
    return _single("peak_gpu_gib", value, "journal: summed", why or "GPU memory was not read")


def _peak_host(subject: Subject) -> Figure:
    memory = subject.seen.memory
    value = gib(memory.peak_host_bytes) if memory else None
    return _single("peak_host_gib", value, "journal: summed", "the engine's process tree was not read")


def _cold_start(subject: Subject) -> Figure:
    start = subject.seen.cold_start
    return _single(
        "cold_start_s", start.total_s if start else None, "journal: summed", "a part of the start is unknown"
    )


def _prepare(subject: Subject) -> Figure:
    """Preparation [s]; nothing to prepare is 0 by the record of phases, not by a missing reading."""
    start = subject.seen.cold_start
    if start is None or subject.asked.base_url is not None:
        return _single("prepare_s", None, "", "the start was not seen")
    if start.prepare_s is not None:
        return _single("prepare_s", start.prepare_s, "journal: summed", "")
    phases = sum(phase.seconds for phase in subject.seen.phases if phase.phase == "preparing")
    return _single("prepare_s", phases, "journal: phase_ended", "")


def _cost(subject: Subject) -> Figure:
    """Money per million output tokens, in the currency of `price_per_hour`."""
    price, rate = subject.asked.price_per_hour, _rate(subject, "output_tok_s")
    if price is None:
        return Figure(metric="cost_per_mtok", of="repeats", why="the candidate declares no price_per_hour")
    if not rate.value:
        return Figure(metric="cost_per_mtok", of="repeats", why=rate.why)
    scale = price / 3600 * 1e6
    return replace(
        rate, value=scale / rate.value, interval=None if rate.interval is None else _inverse(scale, rate.interval)
    )


def _inverse(scale: float, interval: Interval) -> Interval:
    """The interval of scale / x; the high end is infinite where x may be 0."""
    low, high = interval
    return scale / high, scale / low if low > 0 else inf


def _artifact(subject: Subject) -> Figure:
    artifact = subject.seen.artifact
    return _single(
        "artifact_gib", gib(artifact.bytes) if artifact else None, "journal: artifact", "its size is unknown"
    )


_OTHERS: dict[str, Callable[[Subject], Figure]] = {
    "success_rate": _success_rate,
    "quality": _quality,
    "format_pass_rate": _format,
    "quality_drop": _quality_drop,
    "peak_gpu_gib": _peak_gpu,
    "peak_host_gib": _peak_host,
    "cold_start_s": _cold_start,
    "prepare_s": _prepare,
    "cost_per_mtok": _cost,
    "artifact_gib": _artifact,
}
