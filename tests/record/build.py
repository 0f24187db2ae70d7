"""Records of requests with figures that can be worked out by hand."""

from deploytui.record.trace import RequestRecord

MS = 1_000_000
"""Nanoseconds in a millisecond."""


def request(
    number: int = 0,
    *,
    sent_ms: float = 0,
    ttft_ms: float = 100,
    tpot_ms: float = 10,
    tokens: int | None = 11,
    ok: bool = True,
    **other: object,
) -> RequestRecord:
    """A request that streams `tokens` (11 where the server tells none) one a chunk, at an even pace."""
    first = sent_ms + ttft_ms
    last = first + tpot_ms * ((11 if tokens is None else tokens) - 1)
    fields: dict[str, object] = {
        "first_chunk_ns": int((sent_ms + 1) * MS),
        "first_token_ns": int(first * MS),
        "first_content_ns": int(first * MS),
        "last_token_ns": int(last * MS),
        "end_ns": int(last * MS),
        "chunks": tokens or 0,
        "output_tokens": tokens,
        "prompt_tokens": 64,
        "finish_reason": "length",
    }
    return RequestRecord(id=number, sent_ns=int(sent_ms * MS), ok=ok, **{**fields, **other})  # type: ignore[arg-type]


def failure(number: int = 0, *, sent_ms: float = 0, end_ms: float = 5, kind: str = "http_429") -> RequestRecord:
    """A request that gave nothing."""
    return RequestRecord(
        id=number, sent_ns=int(sent_ms * MS), end_ns=int(end_ms * MS), ok=False, error_kind=kind, http_status=429
    )
