"""What the runner and a load worker say to each other: one order in, snapshots and one report out, as JSON lines."""

from typing import Any, Literal

import msgspec
from msgspec import Struct


class Prompt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a prompts file: one request; either `prompt` or `messages`."""

    id: int
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    max_tokens: int | None = None
    """In place of the order's `output_tokens`."""


class LoadOrder(Struct, frozen=True, kw_only=True):
    """One closed-loop load on one endpoint; the first line a worker reads."""

    base_url: str
    """Without `/v1` and without a slash at its end."""
    endpoint: Literal["chat", "completions"]
    model: str
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    """Sampling and other fields of each request; not model, prompt, stream, max_tokens."""
    output_tokens: int
    prompts: str
    """Path of a JSONL file of `Prompt`."""
    concurrency: int
    think_time_s: float = 0.0
    request_timeout_s: float = 120.0
    records: str
    """Path of the file that gets a `RequestRecord` line a request."""
    stamps: str
    """Path of the file that gets the chunk stamps."""
    keep_text: bool = False
    trust_proxy_env: bool = False


class Snapshot(Struct, frozen=True, kw_only=True, tag="snapshot", tag_field="kind"):
    """Where the load is; totals since its start. Dropped rather than waited for."""

    at_ns: int
    total: int
    done: int
    failed: int
    in_flight: int
    chunks: int
    """Generated chunks so far, of finished and running requests."""
    output_tokens: int
    """By the server's usage, of finished requests only."""
    finished_chunks: int
    """Generated chunks of the requests that `output_tokens` counts."""
    ttft_sum_s: float
    ttft_n: int
    tpot_sum_s: float
    tpot_n: int


class Report(Struct, frozen=True, kw_only=True, tag="report", tag_field="kind"):
    """The load is over and its files are synced."""

    at_ns: int
    requests: int
    ok: int
    started_ns: int
    ended_ns: int
    clock: str
    """Who stamped the reads of the finished requests: `kernel`, `user` or `mixed`."""
    lag_ms_p99: float | None
    lag_ms_max: float | None
    cpu_share: float | None
    cancelled: bool = False
    clock_jumps: int = 0
    """How often the wall clock was seen to jump; reads around a jump are stamped in user space."""


class Trouble(Struct, frozen=True, kw_only=True, tag="trouble", tag_field="kind"):
    """The load could not be run at all."""

    what: str
    why: str = ""
    fix: str = ""


Said = Snapshot | Report | Trouble
said_decoder = msgspec.json.Decoder(Said)
