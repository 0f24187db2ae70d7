"""The numbers of a candidate with their units in their names, and why each absent one is absent. Pure."""

from typing import Any

from deploytui.definitions import samples_needed
from deploytui.export.plain import plain
from deploytui.record.facts import ColdStart, Distribution, MemoryUse, Share
from deploytui.record.measured import Metrics, Quality, Spread
from deploytui.record.state import CandidateState, SessionState
from deploytui.units import gib, ms

STATISTICS = ("mean", "std", "min", "p50", "p90", "p95", "p99", "max")
TIMINGS = ("ttfr", "ttft", "ttfo", "tpot", "icl", "itl", "e2e", "ttft_scheduled", "e2e_scheduled", "connect")
RATES = ("output_tok_s", "steady_output_tok_s", "request_s", "goodput")
COUNTS = ("requests", "ok", "duration_s", "tokens_per_chunk", "short_outputs", "cached_tokens", "burst_share")
MEMORY = ("load_gpu", "peak_gpu", "peak_allocated", "peak_reserved", "load_host", "peak_host")
COLD_START = ("checksum_s", "download_s", "prepare_s", "launch_s", "load_s", "first_token_s", "total_s")

NO_SHARE = Share(value=None, n=0, low=None, high=None)

REASONS = {
    "ttfo_ms": "no text besides reasoning",
    "tpot_ms": "under 2 output tokens, or their number is not known",
    "itl_ms": "a chunk is not one token",
    "icl_ms": "no two generated chunks in one answer",
    "ttft_scheduled_ms": "a closed loop has no schedule",
    "e2e_scheduled_ms": "a closed loop has no schedule",
    "connect_ms": "no connection set-up was seen",
    "output_tok_s": "the engine reports no usage",
    "steady_output_tok_s": "no window with at least 90 % of the asked load",
    "goodput": "no per-request gate is set, or one can not be told of every request",
    "tokens_per_chunk": "the engine reports no usage",
    "prompt_tokens": "the engine reports no usage",
    "output_tokens": "the engine reports no usage",
    "cached_tokens": "the engine does not tell",
    "burst_share": "no two generated chunks in one answer",
    "quality": "no quality task was asked",
    "format_pass_rate": "no item asks for a form",
    "peak_allocated_gib": "only the framework knows, and the engine does not report it",
    "peak_reserved_gib": "only the framework knows, and the engine does not report it",
    "cold_start.checksum_s": "no file was hashed",
    "cold_start.download_s": "nothing was downloaded",
    "cold_start.prepare_s": "nothing was prepared",
    "cold_start.total_s": "a part of it was not measured",
}
"""Why a number is absent though the candidate was measured."""


def load_metrics(metrics: Metrics | None) -> dict[str, Any]:
    """What the load showed; all keys are there also when nothing was measured."""
    timings = {f"{name}_ms": timing(_distribution(metrics, name)) for name in TIMINGS}
    spreads = {name: plain(getattr(metrics, name, Spread(n=0))) for name in ("prompt_tokens", "output_tokens")}
    return {
        **timings,
        **{name: getattr(metrics, name, None) for name in RATES},
        "success_rate": plain(metrics.success_rate if metrics else NO_SHARE),
        **spreads,
        **{name: getattr(metrics, name, None) for name in COUNTS},
        "intervals_ms": _intervals(metrics),
        "errors": metrics.errors if metrics else {},
        "flags": metrics.flags if metrics else {},
    }


def timing(distribution: Distribution) -> dict[str, Any]:
    """A latency distribution [ms]."""
    return {"n": distribution.n, **{name: ms(getattr(distribution, name)) for name in STATISTICS}}


def quality_metrics(quality: Quality | None) -> dict[str, Any]:
    """Score, share of answered items and tasks; values None when no task was asked."""
    return {
        "quality": {
            **plain(quality.score if quality else NO_SHARE),
            "answered": plain(quality.answered if quality else NO_SHARE),
            "tasks": plain(quality.tasks if quality else ()),
        },
        "format_pass_rate": plain(quality.format_pass if quality else NO_SHARE),
    }


def memory_metrics(memory: MemoryUse | None) -> dict[str, Any]:
    """Memory [GiB]; GPU figures are above the reading before launch, host figures are the engine's process tree."""
    return {f"{name}_gib": gib(getattr(memory, f"{name}_bytes", None)) for name in MEMORY}


def all_metrics(candidate: CandidateState) -> dict[str, Any]:
    """All numbers of a candidate at the first point."""
    return {
        **load_metrics(candidate.metrics),
        **quality_metrics(candidate.quality),
        **memory_metrics(candidate.memory),
    }


def cold_start(parts: ColdStart | None) -> dict[str, float | None]:
    """The parts of a start and their sum without the checksum, which runs beside the load [s]."""
    return {name: getattr(parts, name, None) for name in COLD_START}


def missing_reasons(candidate: CandidateState, state: SessionState, numbers: dict[str, Any]) -> dict[str, str]:
    """Every number that is absent, with the reason; a statistic is named `ttft_ms.p99`."""
    started = {f"cold_start.{name}": value for name, value in cold_start(candidate.cold_start).items()}
    cause = cause_of_nothing(candidate, state)
    reasons = {}
    for name, value in {**numbers, **started}.items():
        for absent in _absent(name, value):
            reasons[absent] = _reason(absent, value, candidate, state, cause)
    return reasons


def cause_of_nothing(candidate: CandidateState, state: SessionState) -> str:
    """Why a part of the job was not reached at all."""
    word = candidate.run if candidate.run not in (None, "ok") else candidate.status
    if candidate.failure is not None:
        return f"{word or 'failed'}: {candidate.failure.what}"
    if word in (None, "ready", "load_success") or (word == "ok" and candidate.phase != "done"):
        return "the session ended before" if state.ended else "not measured yet"
    return str(word)


def _intervals(metrics: Metrics | None) -> dict[str, list[float]]:
    """The 95 % interval [ms] of each percentile that has one, by a name such as `ttft_ms.p95`."""
    bounds = metrics.bounds if metrics else {}
    named = {name.partition("."): (low, high) for name, (low, high) in bounds.items()}
    return {
        f"{metric}_ms.{statistic}": [low * 1e3, high * 1e3] for (metric, _, statistic), (low, high) in named.items()
    }


def _distribution(metrics: Metrics | None, name: str) -> Distribution:
    if metrics is None or (name == "itl" and not _one_token_a_chunk(metrics)):
        return Distribution(n=0)
    found: Distribution | None = getattr(metrics, "icl" if name == "itl" else name)
    return Distribution(n=0) if found is None else found


def _one_token_a_chunk(metrics: Metrics) -> bool:
    return metrics.tokens_per_chunk is not None and abs(metrics.tokens_per_chunk - 1) <= 0.01


def _absent(name: str, value: Any) -> list[str]:
    if value is None:
        return [name]
    if not isinstance(value, dict) or "n" not in value:
        return []
    if value["n"] == 0:
        return [name]
    return [f"{name}.{statistic}" for statistic, figure in value.items() if figure is None]


def _reason(name: str, value: Any, candidate: CandidateState, state: SessionState, cause: str) -> str:
    _, dot, statistic = name.partition(".")
    if dot and isinstance(value, dict):
        return f"insufficient_samples: {value['n']} of {samples_needed(statistic)}"
    if not _reached(name, candidate):
        return cause
    if name in ("load_gpu_gib", "peak_gpu_gib"):
        return _no_gpu(state)
    if name in REASONS and (candidate.metrics is None or candidate.metrics.ok or not name.endswith("_ms")):
        return REASONS[name]
    return "no request succeeded" if candidate.metrics and not candidate.metrics.ok else "not measured"


def _reached(name: str, candidate: CandidateState) -> bool:
    """Whether the part of the job that gives this number was done."""
    if name.endswith("_gib"):
        return candidate.memory is not None
    if name.startswith("cold_start."):
        return candidate.cold_start is not None
    if name in ("quality", "format_pass_rate"):
        return candidate.quality is not None or (candidate.run == "ok" and candidate.phase == "done")
    return candidate.metrics is not None


def _no_gpu(state: SessionState) -> str:
    environment = state.environment
    if environment is None or environment.gpus:
        return "the candidate uses no GPU, or its driver does not tell"
    return f"no GPU: {environment.gpu_missing}" if environment.gpu_missing else "no GPU on this node"
