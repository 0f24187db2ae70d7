"""What each word means, and its formula; help, export and screen quote this module."""

from collections.abc import Sequence
from math import ceil, sqrt

from deploytui.units import NS

DEFINITIONS_VERSION = 1
"""Rises when a formula changes; records of two versions are not compared."""

TEXTS: dict[str, str] = {
    "sent": "the request's first byte is handed to the kernel; connection set-up is a metric of its own",
    "ttfr": "TTFR: sent to the first response chunk of any kind",
    "ttft": "TTFT: sent to the first chunk with non-empty generated text of any channel (content, reasoning, a tool "
    "call's name or arguments); role-only, empty, comment, usage-only and error chunks do not count",
    "ttfo": "TTFO: sent to the first non-reasoning content",
    "tpot": "TPOT: (last generated chunk - first generated chunk) / (output tokens - 1); null under 2 tokens",
    "icl": "ICL: each gap between generated chunks; called ITL only where a chunk is one token (within 1 %)",
    "e2e": "E2E: sent to the last chunk",
    "output_tokens": "the server's usage (running totals: the last value wins); without it: unknown",
    "output_tok_s": "output tokens of successful requests / (last completion - first send)",
    "steady_output_tok_s": "output tokens inside the window where active requests are at least 90 % of the target, "
    "divided by that window",
    "request_s": "successful requests / (last completion - first send)",
    "goodput": "requests per second that meet every per-request gate; failed requests miss",
    "percentile": "linear interpolation, always with n; p99 under 100 samples and p95 under 20 are null",
    "success_rate": "ok / attempted; a 200 stream that carries an error, ends unmarked or generates nothing has failed",
    "peak_gpu": "the worst device of the candidate, bytes above the reading before launch",
    "peak_host": "the largest sum of resident memory over the engine's process tree, seen once a second or oftener",
    "cold_start": "checksum, download, prepare, launch, load and first token, each its own number; "
    "the cold start is the sum of prepare, launch, load and first token: the checksum runs beside the load, and a "
    "download is paid once",
    "quality": "score over all items of all tasks with n and Wilson interval; not answered is not the same as wrong",
    "workload_key": "what the workload is: texts or generator, lengths, arrivals, sampling, endpoint; without the seed",
    "draw": "the bytes really sent: sha256 of all prompts of the session",
}

SAMPLES_NEEDED: dict[str, int] = {"p99": 100, "p95": 20}
"""Fewest samples of a percentile; below, it is None with reason `insufficient_samples`."""


def ttft(sent_ns: int, first_token_ns: int | None) -> float | None:
    """TTFT [s]; None when nothing was generated."""
    return None if first_token_ns is None else (first_token_ns - sent_ns) * NS


def tpot(first_token_ns: int | None, last_token_ns: int | None, output_tokens: int | None) -> float | None:
    """TPOT [s/token], as vLLM defines it; None under 2 tokens or when the count is unknown."""
    if first_token_ns is None or last_token_ns is None or output_tokens is None or output_tokens < 2:
        return None
    return (last_token_ns - first_token_ns) * NS / (output_tokens - 1)


def percentile(ordered: Sequence[float], q: float) -> float | None:
    """The q-th percentile (0..100) of ascending values by linear interpolation; None of nothing.

    Source: the definition 7 of Hyndman and Fan (1996), which NumPy calls `linear`.
    """
    if not ordered:
        return None
    place = (len(ordered) - 1) * q / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def samples_needed(quantile: str) -> int:
    """How many samples a statistic such as `p95` or `mean` needs before a gate may rest on it."""
    return SAMPLES_NEEDED.get(quantile, 1)


def requests_needed(quantile: str, repeats: int) -> int:
    """Requests per repeat that give a pooled percentile its samples."""
    return ceil(samples_needed(quantile) / max(repeats, 1))


def wilson(hits: int, n: int, z: float = 1.959964) -> tuple[float, float] | None:
    """The 95 % Wilson score interval of a share; None of nothing. Source: Wilson (1927)."""
    if n == 0:
        return None
    share, zz = hits / n, z * z / n
    middle = (share + zz / 2) / (1 + zz)
    half = z * sqrt(share * (1 - share) / n + zz / n / 4) / (1 + zz)
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == n else min(1.0, middle + half)
    return low, high
