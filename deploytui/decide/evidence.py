"""Whether a candidate's numbers may be judged at all: no result, required evidence, and what spoils it."""

from collections.abc import Iterator

from deploytui.decide.figures import Figure
from deploytui.decide.gates import asked_gates, missing
from deploytui.decide.reasons import against_limit, plain, with_figure
from deploytui.decide.subject import Subject, baseline_name, decided_concurrency
from deploytui.decide.title import ATTACHED
from deploytui.profile.schema import Workload
from deploytui.record.measured import Metrics, Spread
from deploytui.record.verdict import Reason

REPEATS_NEEDED = 3
BURSTY = 0.9
"""Share of chunk gaps too short for a decode step from which a stream is not incremental."""
MANY_TOKENS = 16
"""Median reply from which a stream in one or two pieces is not incremental."""
SLACK_TOKENS = 16
"""Cached tokens beyond the chat template that are no contamination: one block of a paged cache."""
TEMPLATE_TOKENS = 64
"""What a chat template may share where its length is not known."""

FAILED_CODES = {"oom": "oom", "checksum_mismatch": "checksum_mismatch"}
"""Failure kinds that have a code of their own."""


def no_result(subject: Subject) -> Iterator[Reason]:
    """Why the candidate has no result: it did not load, or did not survive its load."""
    seen = subject.seen
    if seen.status in ("invalid_config", "unsupported", "load_failed"):
        yield _failed(subject, seen.status, "journal: status")
    elif seen.run == "run_failed" or (seen.oom and seen.run != "interrupted"):
        yield _failed(subject, "run_failed", "journal: run")
    elif subject.metrics is not None and subject.metrics.requests > 0 and subject.metrics.ok == 0:
        yield _all_failed(subject.metrics)


def _failed(subject: Subject, code: str, proof: str) -> Reason:
    failure = subject.seen.failure
    kind = "oom" if subject.seen.oom else failure.kind if failure else "unknown"
    code = FAILED_CODES.get(kind, code)
    if failure is None:
        return plain(code, proof=proof)
    text = f"{failure.what} {failure.why}".strip() if failure.why not in failure.what else failure.what
    return plain(code, text, proof=proof, fix=failure.fix)


def _all_failed(metrics: Metrics) -> Reason:
    kinds = ", ".join(f"{kind} ×{count}" for kind, count in sorted(metrics.errors.items()))
    found = Figure(metric="success_rate", value=0.0, n=metrics.requests, of="requests", proof="journal: measured")
    return with_figure("run_failed", found, f"all {metrics.requests} requests failed: {kinds}")


def unfit(subject: Subject) -> Iterator[Reason]:
    """What makes the evidence unfit, whatever the gates say."""
    if not asked_gates(subject.profile.gates):
        yield plain("nothing_asked")
    if subject.seen.run == "gate_open":
        yield plain("gate_open", proof="journal: run")
    yield from _quality_missing(subject)
    metrics = subject.metrics
    if metrics is None:
        yield missing("ttft_ms", "no repeat was measured at the load that is decided on")
        return
    if metrics.ttft.n == 0:
        yield missing("ttft_ms", "no request has a TTFT")
    if metrics.tool.client_bound:
        why = metrics.tool.client_bound_why
        yield plain("client_bound", why, metric="tool_error", proof="journal: measured")
    if subject.seen.engine is not None and (others := subject.seen.engine.foreign_gpu_processes):
        text = f"before its launch others held memory on its GPUs: {'; '.join(others)}"
        yield plain("foreign_gpu_process", text, proof="journal: engine")
    if is_clumped(metrics):
        yield _clumped(metrics)
    yield from _cached(subject, metrics)


def _quality_missing(subject: Subject) -> Iterator[Reason]:
    """No score, or so many questions without an answer that the gate turns on them."""
    quality, limit = subject.seen.quality, subject.profile.gates.min_quality
    if quality is None or quality.score.value is None:
        yield plain("quality_not_measured", "no quality item was scored", metric="quality")
        return
    silent = 1 - (quality.answered.value if quality.answered.value is not None else 1.0)
    score = quality.score.value
    if silent >= 1 or (limit is not None and score < limit <= score + silent):
        found = Figure(metric="quality_answered", value=1 - silent, n=quality.answered.n, of="items")
        yield with_figure(
            "quality_not_measured", found, f"{silent:.0%} of the quality items got no answer, which is not a wrong one"
        )


def is_clumped(metrics: Metrics) -> bool:
    """Whether tokens came in bursts, or whole replies in a piece or two, though chunks could have come singly."""
    per_chunk = metrics.tokens_per_chunk
    tokens = metrics.output_tokens.median
    if metrics.burst_share is not None and metrics.burst_share >= BURSTY and (tokens is None or tokens >= 8):
        return per_chunk is None or per_chunk < 2
    return per_chunk is not None and tokens is not None and tokens >= MANY_TOKENS and per_chunk >= tokens / 2


def _clumped(metrics: Metrics) -> Reason:
    found = Figure(metric="burst_share", value=metrics.burst_share, n=metrics.icl.n, of="requests")
    if metrics.burst_share is not None and metrics.burst_share >= BURSTY:
        text = f"{metrics.burst_share:.0%} of the gaps between chunks are under 0.2 ms"
        return against_limit("stream_not_incremental", found, BURSTY, BURSTY - metrics.burst_share, text)
    return with_figure("stream_not_incremental", found, "whole replies came in one or two chunks")


def _cached(subject: Subject, metrics: Metrics) -> Iterator[Reason]:
    if metrics.cached_tokens is None or metrics.ok == 0 or subject.asked.settings.prefix_cache is True:
        return
    prompts = subject.state.prompts
    overhead = prompts.overhead_tokens if prompts else None
    shared = _shared_tokens(subject.profile.workload, metrics.prompt_tokens)
    allowed = (TEMPLATE_TOKENS if overhead is None else overhead) + SLACK_TOKENS + shared
    each = metrics.cached_tokens / metrics.ok
    if each > allowed:
        found = Figure(metric="cached_tokens", value=each, n=metrics.ok, of="requests", proof="journal: measured")
        what = "the template and what the workload shares explain" if shared else "the template explains"
        text = f"{each:.0f} prompt tokens a request came from the prefix cache; {what} {allowed:.0f}"
        yield against_limit("cache_contaminated", found, allowed, allowed - each, text)


def _shared_tokens(workload: Workload, prompts: Spread) -> float:
    """Prompt tokens a request that the workload itself lets come from a cache: its shared prefix, and in conversations
    the history before a question, which is what a mean prompt has more than the shortest, a first question.
    """
    mean = prompts.mean if prompts.mean is not None else prompts.median
    if mean is None or prompts.min is None:
        return 0.0
    prefix = workload.shared_prefix.ratio * mean if workload.shared_prefix else 0.0
    return prefix + (mean - prompts.min if workload.turns > 1 else 0.0)


def smoke(subject: Subject, judged: tuple[Reason, ...]) -> Iterator[Reason]:
    """Whether this was a smoke test; `judged` are the gates' reasons, among them percentiles without their samples."""
    grounds = list(_smoke_grounds(subject, judged))
    if grounds:
        found = Figure(metric="repeats", value=len(subject.repeats), n=len(subject.repeats), of="repeats")
        yield against_limit(
            "smoke", found, REPEATS_NEEDED, len(subject.repeats) - REPEATS_NEEDED, "a smoke test: " + "; ".join(grounds)
        )


def _smoke_grounds(subject: Subject, judged: tuple[Reason, ...]) -> Iterator[str]:
    workload = subject.profile.workload
    if len(subject.repeats) < REPEATS_NEEDED:
        yield f"{len(subject.repeats)} of at least {REPEATS_NEEDED} repeats"
    needed = decided_concurrency(workload) or 1
    if workload.warmup_requests < needed:
        yield f"{workload.warmup_requests} warm-up requests where the load keeps {needed} in flight"
    yield from (reason.text for reason in judged if reason.code == "insufficient_samples")


def notes(subject: Subject) -> Iterator[Reason]:
    """What a reader should know of a candidate that ran, without effect."""
    if subject.seen.status != "load_success":
        return
    environment = subject.state.environment
    device = subject.seen.engine.device if subject.seen.engine else None
    here = subject.asked.engine != ATTACHED
    if here and ((environment is not None and not environment.gpus) or (device or "").lower().startswith("cpu")):
        yield plain("cpu_only")
    if len(subject.seen.factors) > 1:
        yield plain("confounded_change", f"it differs from the baseline in {', '.join(subject.seen.factors)}")
    if subject.profile.gates.max_quality_drop is not None and (
        subject.baseline is None or subject.baseline.quality is None
    ):
        name = baseline_name(subject.profile, subject.state)
        yield plain("no_baseline", f"the baseline {name} has no quality result" if name else "no baseline is named")
