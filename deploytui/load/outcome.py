"""What became of a request: its record, once its answer is over."""

from typing import TYPE_CHECKING

from deploytui.load.refusal import not_a_stream, refusal
from deploytui.record.trace import RequestRecord

if TYPE_CHECKING:
    from deploytui.load.answer import Answer

_FORGIVEN = frozenset({"timeout", "reset", "truncated"})
"""Ends of a connection that do no harm once the answer was complete."""


def record_of(answer: "Answer") -> RequestRecord:
    """The record of an answer that is over."""
    failure = _failure(answer)
    stamps = answer.stamps
    return RequestRecord(
        id=answer.id,
        user=answer.user,
        sent_ns=answer.sent_ns,
        scheduled_ns=answer.scheduled_ns,
        conversation=answer.conversation,
        clock=answer.clock,
        connect_ns=answer.connect_ns,
        first_chunk_ns=answer.first_chunk_ns,
        first_token_ns=stamps[0] if stamps else None,
        first_content_ns=answer.first_content_ns,
        last_token_ns=stamps[-1] if stamps else None,
        end_ns=_ended(answer),
        chunks=len(stamps),
        multi_chunk_reads=answer.multi_chunk_reads,
        extra_multi_chunk_reads=answer.late_merged,
        reads=answer.reads,
        output_tokens=answer.usage.output_tokens,
        prompt_tokens=answer.usage.prompt_tokens,
        cached_tokens=answer.usage.cached_tokens,
        finish_reason=answer.finish_reason,
        http_status=answer.http.head.status if answer.http.head else None,
        ok=failure is None,
        error_kind=failure and failure[0],
        error=failure and failure[1],
        flags=_noted(answer),
        text="".join(answer.content) if answer.keep_text else None,
        reasoning="".join(answer.reasoning) if answer.keep_text and answer.reasoning else None,
        tool_call=answer.tool_call,
    )


def _is_complete(answer: "Answer") -> bool:
    return answer.done_ns is not None or answer.finish_reason is not None


def _ended(answer: "Answer") -> int:
    """When the answer was complete; a server that is slow to close behind it costs nothing."""
    if answer.done_ns is not None:
        return answer.done_ns
    late = _is_complete(answer) and answer.failed is not None and answer.failed[0] in _FORGIVEN
    end = _last_event_ns(answer) if late else answer.end_ns
    return end if end is not None else answer.sent_ns


def _last_event_ns(answer: "Answer") -> int | None:
    ends = (answer.event_ns, answer.stamps[-1] if answer.stamps else None)
    return max((end for end in ends if end is not None), default=None)


def _failure(answer: "Answer") -> tuple[str, str] | None:
    """Kind and text; None of a success."""
    head = answer.http.head
    if head is not None and not 200 <= head.status < 300:
        return f"http_{head.status}", refusal(head, bytes(answer.other))
    if answer.failed is not None and (answer.failed[0] not in _FORGIVEN or not _is_complete(answer)):
        return ("stream_error", answer.stream_error) if answer.stream_error else answer.failed
    if head is not None and not answer.is_stream:
        return "not_a_stream", not_a_stream(head, bytes(answer.other))
    if answer.stream_error is not None:
        return "stream_error", answer.stream_error
    if not answer.stamps:
        return "empty", "the server generated nothing"
    if not _is_complete(answer):
        return "truncated", "the stream ended with neither a finish reason nor [DONE]"
    return None


def _noted(answer: "Answer") -> tuple[str, ...]:
    flags = set(answer.flags)
    if answer.reconnected:
        flags.add("reconnected")
    if answer.retried:
        flags.add("retried")
    if answer.is_stream and _is_complete(answer):
        flags |= {"no_done"} if answer.done_ns is None else set()
        flags |= {"no_finish_reason"} if answer.finish_reason is None else set()
        flags |= {"unterminated"} if answer.failed is not None else set()
    return tuple(sorted(flags))
