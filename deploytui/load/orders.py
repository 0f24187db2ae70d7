"""What the runner and a load worker say to each other: one order in, snapshots and one report out, as JSON lines."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

Stopped = Literal["time", "errors", "cancelled"]
"""Why a load ended before all was asked: its time was over, too many requests failed, or somebody wished it."""


KEY_HEADERS = ("authorization", "api-key", "x-api-key")
"""Headers that carry a key, in lower case."""


class Prompt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of a prompts file: one request; either `prompt` or `messages`."""

    id: int
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    max_tokens: int | None = None
    """In place of the order's `output_tokens`."""
    at_s: float | None = None
    """When it shall be sent, counted from the start of the load [s]; None in a closed loop."""
    conversation: int | None = None
    """Lines of one conversation are its turns: each is sent by the same user, when the one before is answered."""


class LoadOrder(Struct, frozen=True, kw_only=True):
    """One worker's share of a load on one endpoint; the first line a worker reads."""

    base_url: str
    """Without `/v1` and without a slash at its end."""
    endpoint: Literal["chat", "completions", "generate"]
    """The first two are OpenAI's; `generate` is the own one of Text Generation Inference."""
    model: str
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    """Sampling and other fields of each request; not model, prompt, stream, max_tokens."""
    output_tokens: int
    prompts: str
    """Path of a JSONL file of `Prompt`."""
    loop: Literal["closed", "open"] = "closed"
    """Closed: users wait for their answers. Open: each request, or first turn, leaves when its `at_s` has come."""
    concurrency: int
    """Users of this worker in a closed loop; in an open loop connections to open beforehand."""
    think_time_s: float = 0.0
    shard: int = 0
    """This worker's number: it sends the lines, or conversations, whose place modulo `shards` is this."""
    shards: int = 1
    transport: Literal["direct", "aiohttp"] = "direct"
    max_s: float | None = None
    """When to stop sending, counted from the start [s]; what is under way then is cut off."""
    max_error_rate: float | None = None
    """Stop when more than this share of the finished requests failed, once 20 are finished."""
    wait_for_start: bool = False
    """Say `ready` when all is rendered and connected, then begin at the moment `{"do": "start", "at_ns": N}` names."""
    request_timeout_s: float = 120.0
    records: str
    """Path of the file that gets a `RequestRecord` line a request."""
    stamps: str
    """Path of the file that gets the chunk stamps."""
    keep_text: bool = False
    secrets: tuple[str, ...] = ()
    """What no file shall hold, though a server may repeat it."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that `headers` carry, of whatever length; some servers repeat them in an error."""
        carried = (value.removeprefix("Bearer ") for name, value in self.headers.items() if name.lower() in KEY_HEADERS)
        return tuple(filter(None, carried))


class Ready(Struct, frozen=True, kw_only=True, tag="ready", tag_field="kind"):
    """All is rendered and connected; the worker waits for its start."""

    at_ns: int
    connected: int
    """Connections that are open."""


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
    path: str = "tcp"
    """How the requests went: `tcp`, `tls` or `aiohttp`."""
    lag_ms_p50: float | None = None
    lag_ms_p99: float | None
    lag_ms_max: float | None
    """How long bytes waited for this process: by the kernel's stamps, else how late its loop was."""
    cpu_share: float | None
    cpu_s: float | None = None
    """Processor time of the worker's whole life so far [s]."""
    peak_rss_bytes: int | None = None
    reads: int = 0
    multi_chunk_reads: int = 0
    extra_multi_chunk_reads: int = 0
    """Those of `multi_chunk_reads` that came of this process reading late, not of the server sending together."""
    late_sends: int = 0
    """Requests of an open loop sent more than 1 ms after their time."""
    late_send_ms_max: float | None = None
    refused: int = 0
    """Answers with status 429."""
    reconnects: int = 0
    stopped: Stopped | None = None
    """Why the load ended before all was answered; None when all was."""
    not_sent: int = 0
    """Requests of the order that were never sent."""
    records_sha256: str | None = None
    records_bytes: int | None = None
    stamps_sha256: str | None = None
    stamps_bytes: int | None = None
    cancelled: bool = False
    clock_jumps: int = 0
    """How often the wall clock was seen to jump; reads around a jump are stamped in user space."""


class Trouble(Struct, frozen=True, kw_only=True, tag="trouble", tag_field="kind"):
    """The load could not be run at all."""

    what: str
    why: str = ""
    fix: str = ""


Said = Ready | Snapshot | Report | Trouble
said_decoder = msgspec.json.Decoder(Said)
