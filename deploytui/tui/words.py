"""How the screen names things that the record names for machines."""

from deploytui.record.verdict import Reason
from deploytui.tui.figures import grouped, number

ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TRT-LLM",
    "llamacpp": "llama.cpp",
    "tgi": "TGI",
    "transformers": "Transformers",
    "onnxruntime-genai": "ORT GenAI",
    "openai": "endpoint",
}
LATENCIES = {"ttfr": "TTFR", "ttft": "TTFT", "ttfo": "TTFO", "tpot": "TPOT", "icl": "ICL", "e2e": "E2E"}
METRICS = {
    "output_tok_s": ("output", "tok/s"),
    "steady_output_tok_s": ("steady output", "tok/s"),
    "request_s": ("requests", "/s"),
    "goodput": ("goodput", "/s"),
    "success_rate": ("success", ""),
    "quality": ("quality", ""),
    "quality_drop": ("quality drop", ""),
    "format_pass_rate": ("format", ""),
    "peak_gpu_gib": ("peak GPU", "GiB"),
    "peak_host_gib": ("peak host", "GiB"),
    "artifact_gib": ("artifact", "GiB"),
    "cold_start_s": ("cold start", "s"),
    "prepare_s": ("prepare", "s"),
    "cost_per_mtok": ("cost per Mtok", ""),
}
UPPER_IS_WORSE = ("_ms", "_gib", "cold_start_s", "prepare_s", "cost_per_mtok", "quality_drop")
DECISION_SIGNS = {"accept": "✔", "tune": "~", "reject": "✘"}


def engine_title(name: str) -> str:
    """The engine's name as its makers write it."""
    return ENGINES.get(name, name)


def metric_title(metric: str) -> tuple[str, str]:
    """Name and unit of a metric such as `ttft_ms.p95`."""
    stem, _, statistic = metric.partition(".")
    if stem.endswith("_ms") and (title := LATENCIES.get(stem.removesuffix("_ms"))):
        return f"{title} {statistic}".strip(), "ms"
    title, unit = METRICS.get(stem, (stem.replace("_", " "), ""))
    return f"{title} {statistic}".strip(), unit


def comparison(reason: Reason) -> str:
    """A reason's figures, such as `TTFT p95 182 ≤ 500 ms (n=600, ±9)`; '' when it has none."""
    if reason.metric is None or reason.value is None:
        return ""
    title, unit = metric_title(reason.metric)
    figures = f"{title} {number(reason.value)}"
    if reason.limit is not None:
        figures += f" {_relation(reason)} {number(reason.limit)}"
    return " ".join(part for part in (figures, unit, _sample(reason)) if part)


def _relation(reason: Reason) -> str:
    """The sign that is true between value and limit."""
    value, limit = reason.value or 0.0, reason.limit or 0.0
    upper = (reason.metric or "").partition(".")[0].endswith(UPPER_IS_WORSE)
    if upper:
        return "≤" if value <= limit else ">"
    return "≥" if value >= limit else "<"


def _sample(reason: Reason) -> str:
    parts = [f"n={grouped(reason.n)}"] if reason.n is not None else []
    if reason.low is not None and reason.high is not None:
        parts.append(f"{number(reason.low)}…{number(reason.high)}")
    return f"({', '.join(parts)})" if parts else ""
