"""Answers that are no event stream, in words."""

from deploytui.load.chunks import error_text
from deploytui.load.head import Head


def refusal(head: Head, body: bytes) -> str:
    """The server's message, and where or when it wants to be asked instead."""
    said = [error_text(body) or f"HTTP status {head.status} without a message"]
    said += [
        f"{name.title()}: {head.headers[name][:100]}" for name in ("retry-after", "location") if name in head.headers
    ]
    return "; ".join(said)


def not_a_stream(head: Head, body: bytes) -> str:
    """What came in place of an event stream."""
    coding = head.headers.get("content-encoding")
    kind = f"{coding}-encoded " if coding else ""
    media = head.media_type or "data without a content type"
    return f"the server answered with {kind}{media} in place of an event stream: {error_text(body)[:200]}"
