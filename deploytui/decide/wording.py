"""Figures and limits as people read them."""

from deploytui.compare.statistics import Interval
from deploytui.decide.figures import Figure

TITLES = {
    "ttft_ms": "TTFT",
    "tpot_ms": "TPOT",
    "e2e_ms": "E2E latency",
    "output_tok_s": "output throughput",
    "request_s": "request rate",
    "goodput": "goodput",
    "success_rate": "success rate",
    "quality": "quality",
    "quality_drop": "quality drop",
    "format_pass_rate": "format pass rate",
    "peak_gpu_gib": "peak GPU memory",
    "peak_host_gib": "peak host memory",
    "cold_start_s": "cold start",
    "prepare_s": "preparation",
    "cost_per_mtok": "cost per million output tokens",
    "artifact_gib": "artifact",
}
UNITS = {
    "ttft_ms": "ms",
    "tpot_ms": "ms",
    "e2e_ms": "ms",
    "output_tok_s": "tokens/s",
    "request_s": "requests/s",
    "goodput": "requests/s",
    "peak_gpu_gib": "GiB",
    "peak_host_gib": "GiB",
    "cold_start_s": "s",
    "prepare_s": "s",
    "artifact_gib": "GiB",
}


def title(metric: str) -> str:
    """A metric's name for people, such as `TTFT p95`."""
    base, _, statistic = metric.partition(".")
    return f"{TITLES.get(base, base)} {statistic}".rstrip()


def unit(metric: str) -> str:
    """A metric's unit with a space in front; empty for shares."""
    found = UNITS.get(metric.partition(".")[0])
    return f" {found}" if found else ""


def number(value: float) -> str:
    """Three significant digits, whole numbers in full."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def between(interval: Interval | None) -> str:
    """An interval in words; empty for none."""
    return "" if interval is None else f"{number(interval[0])} to {number(interval[1])}"


def compared(figure: Figure, sign: str, limit: float) -> str:
    """A figure against its limit, such as `TTFT p95 182 ≤ 500 ms (n=600 requests, 173 to 191)`."""
    value = "unknown" if figure.value is None else number(figure.value)
    sample = f"n={figure.n} {figure.of}" if figure.n is not None and figure.of != "launches" else ""
    detail = ", ".join(part for part in (sample, between(figure.interval)) if part)
    text = f"{title(figure.metric)} {value} {sign} {number(limit)}{unit(figure.metric)}"
    return f"{text} ({detail})" if detail else text
