"""One request as the client saw it: a line of `requests.w0.jsonl`."""

from msgspec import Struct

CUT_OFF = "cut_off"
"""The error kind of a request that was under way when the load itself was ended: it says nothing of the server."""


class RequestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One request; stamps are `time.monotonic_ns()` of the worker's host, None for what did not come."""

    id: int
    """Within its step, as sent in `X-Request-Id`."""
    user: int = 0
    sent_ns: int
    scheduled_ns: int | None = None
    """When an open loop wanted it sent; None in a closed loop."""
    worker: int = 0
    conversation: int | None = None
    clock: str = "user"
    """Who stamped its reads: `kernel`, `user`, or `mixed`."""
    connect_ns: int | None = None
    """How long connection set-up took [ns]; None on a reused connection."""
    first_chunk_ns: int | None = None
    """First event of any kind (TTFR)."""
    first_token_ns: int | None = None
    """First generated text of any channel (TTFT)."""
    first_content_ns: int | None = None
    """First text that is not reasoning (TTFO)."""
    last_token_ns: int | None = None
    end_ns: int
    chunks: int = 0
    """Chunks that carried generated text; their stamps are in the stamps sidecar."""
    multi_chunk_reads: int = 0
    """Reads that held more than one generated chunk, which then share a stamp."""
    extra_multi_chunk_reads: int = 0
    """Those of them that came of the client reading late, not of the server sending together."""
    reads: int = 0
    asked_tokens: int | None = None
    """The output length it was asked for, where that is its own and not the workload's."""
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    http_status: int | None = None
    ok: bool
    error_kind: str | None = None
    """`http_NNN`, `stream_error`, `truncated`, `empty`, `timeout`, `connect`, `reset`, `not_a_stream`,
    `line_too_long`, `bad_response` where the peer does not speak HTTP/1.1, or `cut_off`."""
    error: str | None = None
    flags: tuple[str, ...] = ()
    """`no_done`, `no_finish_reason`, `usage_fell`, `reconnected`, `bad_utf8`, `unterminated`,
    `retried` (asked again after a 429, as the server wished)."""
    text: str | None = None
    """The content, only where it was asked to be kept."""
    reasoning: str | None = None
    tool_call: bool = False
