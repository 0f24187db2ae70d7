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
    "ttft_scheduled": "open loops: TTFT from the time the request was due (scheduled to the first generated chunk), so "
    "that one sent late does not hide its wait; null in a closed loop",
    "e2e_scheduled": "open loops: E2E from the time the request was due (scheduled to the last chunk); null in a "
    "closed loop",
    "output_tokens": "the server's usage (running totals: the last value wins); without it: unknown",
    "output_tok_s": "output tokens of successful requests / (last completion - first send); being cut off by the "
    "load's end is no completion",
    "steady_output_tok_s": "output tokens inside the window where active requests are at least 90 % of the target, "
    "divided by that window, which ends where the first request was sent that the load's end cut off",
    "request_s": "successful requests / (last completion - first send)",
    "goodput": "requests per second that meet every per-request gate; failed requests miss",
    "percentile": "linear interpolation, always with n; p99 under 100 samples and p95 under 20 are null",
    "success_rate": "ok / attempted; a 200 stream that carries an error, ends unmarked or generates nothing has "
    "failed; requests that the load's end cut off (`cut_off`) count neither way",
    "peak_gpu": "the worst device of the candidate, bytes above the reading before launch",
    "peak_host": "the largest sum of resident memory over the engine's process tree, seen once a second or oftener",
    "cold_start": "checksum, download, prepare, launch, load and first token, each its own number; "
    "the cold start is the sum of prepare, launch, load and first token: the checksum runs beside the load, and a "
    "download is paid once",
    "quality": "score over all items of all tasks with n and Wilson interval; not answered is not the same as wrong",
    "workload_key": "what the workload is: texts or generator, lengths, arrivals, sampling, endpoint; without the seed",
    "draw": "the bytes really sent: sha256 of all prompts of the session",
    "tok_s_per_user": "1 / median TPOT: the tokens per second that one reader sees once they come",
    "pareto": "a point of a load that no other dominates, which has at least its output tok/s and at most its TTFT p95 "
    "and TPOT p95, and is better in one of them; a point that lacks one of the three neither dominates nor is marked",
    "knee": "Kneedle (Satopää et al., 2011, S = 1) of output tok/s over load: both scaled to 0..1, the point furthest "
    "above the chord; none under 3 points, or where the curve does not come back to the chord by 1 / (points - 1)",
    "capacity": "the highest load that held the latency and success gates below the first that missed them, found by "
    "doubling and halving; the true one lies from it up to that first miss",
}

SAMPLES_NEEDED: dict[str, int] = {"p99": 100, "p95": 20}
"""Fewest samples of a percentile; below, it is None with reason `insufficient_samples`."""

PERCENTILES: dict[str, float] = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}
"""The percentiles of every distribution."""


def ttft(sent_ns: int, first_token_ns: int | None) -> float | None:
    """TTFT [s]; None when nothing was generated."""
    return None if first_token_ns is None else (first_token_ns - sent_ns) * NS


def tpot(first_token_ns: int | None, last_token_ns: int | None, output_tokens: int | None) -> float | None:
    """TPOT [s/token], as vLLM defines it; None under 2 tokens or when the count is unknown."""
    if first_token_ns is None or last_token_ns is None or output_tokens is None or output_tokens < 2:
        return None
    return (last_token_ns - first_token_ns) * NS / (output_tokens - 1)


def percentile_place(n: int, q: float) -> tuple[int, int, float]:
    """Between which two of n ascending values (counted from 0) the q-th percentile lies, and how far from the first.

    Source: the definition 7 of Hyndman and Fan (1996), which NumPy calls `linear`.
    """
    place = (n - 1) * q / 100
    low = int(place)
    return low, min(low + 1, n - 1), place - low


def percentile(ordered: Sequence[float], q: float) -> float | None:
    """The q-th percentile (0..100) of ascending values by linear interpolation; None of nothing."""
    if not ordered:
        return None
    low, high, part = percentile_place(len(ordered), q)
    return ordered[low] + (ordered[high] - ordered[low]) * part


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
