"""The numbers of one repeat, or of all repeats of a candidate at one point."""

from msgspec import Struct

from deploytui.record.facts import Distribution, Share


class Spread(Struct, frozen=True, kw_only=True):
    """Smallest, middle, mean and largest of integer counts; all None of nothing."""

    n: int
    min: int | None = None
    median: float | None = None
    mean: float | None = None
    """None in records of early versions, too."""
    max: int | None = None


class ToolError(Struct, frozen=True, kw_only=True):
    """What the tool itself may have added: the clock used, its own lag, and reads that held several tokens."""

    clock: str = "user"
    path: str = "tcp"
    """How the requests went: `tcp`, `tls` or `aiohttp`."""
    lag_ms_p50: float | None = None
    lag_ms_p99: float | None = None
    lag_ms_max: float | None = None
    """How long bytes waited for the load worker [ms]."""
    multi_chunk_read_share: float | None = None
    extra_multi_chunk_read_share: float | None = None
    """Share of reads in which chunks met because the worker read late, not because the server sent them together."""
    late_sends: int = 0
    """Requests of an open loop sent more than 1 ms after their time."""
    late_send_ms_max: float | None = None
    workers: int = 1
    worker_cpu_share: float | None = None
    """The busiest worker's share of a core."""
    worker_cpu_shares: tuple[float | None, ...] = ()
    """Of each worker."""
    clock_jumps: int = 0
    """Jumps of the wall clock, which kernel stamps are carried over from."""
    client_bound: bool = False
    client_bound_why: str = ""
    """What shows it, and what to do."""


class Metrics(Struct, frozen=True, kw_only=True):
    """Latencies [s], rates [1/s] and shares of a set of requests; latencies are of successful requests only."""

    requests: int
    ok: int
    duration_s: float | None
    ttfr: Distribution
    ttft: Distribution
    ttfo: Distribution
    tpot: Distribution
    icl: Distribution
    e2e: Distribution
    ttft_scheduled: Distribution | None = None
    """Open loops only: from the time the request should have left."""
    e2e_scheduled: Distribution | None = None
    connect: Distribution
    tokens_per_chunk: float | None
    output_tok_s: float | None
    steady_output_tok_s: float | None
    request_s: float | None
    goodput: float | None
    """None when no per-request gate is set."""
    success_rate: Share
    prompt_tokens: Spread
    output_tokens: Spread
    short_outputs: int
    """Successful requests that ended before the asked length."""
    cached_tokens: int | None
    """Prompt tokens the engine took from its prefix cache; None when it does not tell."""
    burst_share: float | None
    """Share of gaps between chunks under 0.2 ms; near 1 for a stream that is not incremental."""
    bounds: dict[str, tuple[float, float]] = {}
    """The 95 % order-statistic interval [s] of each percentile a gate may rest on, by a key such as `ttft.p95`; absent
    where the percentile is. Journalled because it needs the raw sample."""
    errors: dict[str, int] = {}
    """Failed requests by kind."""
    flags: dict[str, int] = {}
    """Requests with something to note, by flag."""
    tool: ToolError = ToolError()


class TaskScore(Struct, frozen=True, kw_only=True):
    """One quality task; `score` over all its items, `answered` says how many gave text at all."""

    task: str
    sha256: str
    score: Share
    answered: Share
    format_pass: Share
    degenerate: int = 0


class Quality(Struct, frozen=True, kw_only=True):
    """All tasks of a candidate together."""

    score: Share
    answered: Share
    format_pass: Share
    tasks: tuple[TaskScore, ...] = ()
