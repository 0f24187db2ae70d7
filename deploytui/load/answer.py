"""One response folded into its record: reads with their stamps go in, a RequestRecord and chunk stamps come out."""

from array import array
from dataclasses import dataclass, field

from deploytui.load.chunks import TEXT_CAP, Chunk, Usage, error_text, is_whole, parse
from deploytui.load.http1 import Head, ResponseReader
from deploytui.load.sse import EVENT_CAP, Event, EventReader
from deploytui.record.trace import RequestRecord

OTHER_CAP = 16 << 10
"""Most of a body that is no event stream that is kept for its message [bytes]."""

_FORGIVEN = frozenset({"timeout", "reset", "truncated"})
"""Ends of a connection that do no harm once the answer was complete."""


@dataclass(slots=True, kw_only=True, eq=False)
class Answer:
    """What came so far of one response; `over` when nothing more is awaited."""

    id: int
    user: int
    sent_ns: int
    connect_ns: int | None = None
    keep_text: bool = False
    reconnected: bool = False
    over: bool = False
    stamps: "array[int]" = field(default_factory=lambda: array("q"))
    """When each generated chunk came [ns]."""
    done_ns: int | None = None
    """When `[DONE]` came; the server may still have to end the response's framing."""
    reads: int = 0
    clocks: set[str] = field(default_factory=set)
    """Who stamped its reads."""
    _multi_chunk_reads: int = 0
    _first_chunk_ns: int | None = None
    _first_content_ns: int | None = None
    _event_ns: int | None = None
    _read_ns: int = 0
    _end_ns: int | None = None
    _finish_reason: str | None = None
    _usage: Usage = field(default_factory=Usage)
    _failed: tuple[str, str] | None = None
    """How the connection failed: kind and text."""
    _stream_error: str | None = None
    _flags: set[str] = field(default_factory=set)
    _content: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _tool_call: bool = False
    _is_stream: bool = False
    _other: bytearray = field(default_factory=bytearray)
    _http: ResponseReader = field(default_factory=ResponseReader)
    _sse: EventReader = field(default_factory=EventReader)

    def read(self, data: bytes, at_ns: int) -> None:
        """Take what one read brought; all its events share its stamp."""
        if self.over:
            return
        self.reads += 1
        self._read_ns = at_ns
        headless = self._http.head is None
        body = self._http.feed(data)
        if headless and self._http.head is not None:
            self._is_stream = _is_stream(self._http.head)
        if body:
            self._take_body(body, at_ns)
        if self._http.bad is not None:
            self.fail("bad_response", self._http.bad, at_ns)
        elif self._http.over and not self.over:
            self._take_end(at_ns)

    def eof(self, at_ns: int) -> None:
        """The peer closed the connection."""
        if self.over:
            return
        cut_short = self._http.eof()
        if self._http.head is None:
            self.fail("reset", "the server closed the connection without answering", at_ns)
        elif not cut_short:
            self._take_end(at_ns)
        else:
            self._take_unterminated()
            self.fail("truncated", "the connection was closed in the middle of the response", at_ns)

    def fail(self, kind: str, text: str, at_ns: int) -> None:
        """The response can't go on, for a reason of the connection; the first reason stays."""
        if not self.over:
            self._failed = (kind, text[:TEXT_CAP])
            self._finish(at_ns)

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        return self._failed is None and self._http.reusable

    @property
    def unanswered(self) -> bool:
        """Whether the connection ended before any byte of the reply."""
        return self._failed is not None and self._failed[0] == "reset" and not self.reads

    @property
    def signs_of_life(self) -> int:
        """Comment lines so far, by which a server says that it still works on the prompt."""
        return self._sse.comments

    def record(self) -> RequestRecord:
        """The record of the response, once it is over."""
        failure = self._failure()
        stamps = self.stamps
        return RequestRecord(
            id=self.id,
            user=self.user,
            sent_ns=self.sent_ns,
            connect_ns=self.connect_ns,
            first_chunk_ns=self._first_chunk_ns,
            first_token_ns=stamps[0] if stamps else None,
            first_content_ns=self._first_content_ns,
            last_token_ns=stamps[-1] if stamps else None,
            end_ns=self._ended(),
            chunks=len(stamps),
            multi_chunk_reads=self._multi_chunk_reads,
            reads=self.reads,
            output_tokens=self._usage.output_tokens,
            prompt_tokens=self._usage.prompt_tokens,
            cached_tokens=self._usage.cached_tokens,
            finish_reason=self._finish_reason,
            http_status=self._http.head.status if self._http.head else None,
            ok=failure is None,
            error_kind=failure and failure[0],
            error=failure and failure[1],
            flags=self._noted(),
            text="".join(self._content) if self.keep_text else None,
            reasoning="".join(self._reasoning) if self.keep_text and self._reasoning else None,
            tool_call=self._tool_call,
        )

    def _take_body(self, body: bytes, at_ns: int) -> None:
        if not self._is_stream:
            self._other += body[: OTHER_CAP - len(self._other)]
            return
        before = len(self.stamps)
        for event in self._sse.feed(body):
            self._take(event, at_ns)
        self._multi_chunk_reads += len(self.stamps) - before > 1
        if self._sse.too_long:
            self.fail("line_too_long", f"a line or event of the stream is longer than {EVENT_CAP >> 20} MiB", at_ns)

    def _take(self, event: Event, at_ns: int) -> None:
        if self.done_ns is not None:
            return
        self._event_ns = at_ns
        if self._first_chunk_ns is None:
            self._first_chunk_ns = at_ns
        chunk = parse(event)
        if chunk.done:
            self.done_ns = at_ns
            return
        if chunk.generated:
            self._take_text(chunk, at_ns)
        if chunk.usage is not None:
            self._take_usage(chunk.usage)
        self._finish_reason = chunk.finish_reason or self._finish_reason
        if chunk.bad_text:
            self._flags.add("bad_utf8")
        if chunk.error is not None and self._stream_error is None:
            self._stream_error = chunk.error

    def _take_text(self, chunk: Chunk, at_ns: int) -> None:
        self.stamps.append(at_ns)
        if self._first_content_ns is None and (chunk.content or chunk.tool_call):
            self._first_content_ns = at_ns
        self._tool_call = self._tool_call or chunk.tool_call
        if self.keep_text:
            self._content.append(chunk.content)
            if chunk.reasoning:
                self._reasoning.append(chunk.reasoning)

    def _take_usage(self, usage: Usage) -> None:
        old = self._usage
        self._usage = Usage(
            self._larger(old.prompt_tokens, usage.prompt_tokens),
            self._larger(old.output_tokens, usage.output_tokens),
            self._larger(old.cached_tokens, usage.cached_tokens),
        )

    def _larger(self, old: int | None, new: int | None) -> int | None:
        if old is None or new is None:
            return old if new is None else new
        if new < old:
            self._flags.add("usage_fell")
        return max(old, new)

    def _take_unterminated(self) -> None:
        """A last event without its empty line; it was there with the last bytes, not when the connection closed."""
        event = self._sse.unterminated() if self._is_stream else None
        if event is not None and self.done_ns is None and is_whole(event.data):
            self._flags.add("unterminated")
            self._take(event, self._read_ns)

    def _take_end(self, at_ns: int) -> None:
        self._take_unterminated()
        self._finish(at_ns)

    def _finish(self, at_ns: int) -> None:
        self.over = True
        self._end_ns = at_ns

    @property
    def _complete(self) -> bool:
        return self.done_ns is not None or self._finish_reason is not None

    def _ended(self) -> int:
        """When the answer was complete; a server that is slow to close behind it costs nothing."""
        if self.done_ns is not None:
            return self.done_ns
        late = self._complete and self._failed is not None and self._failed[0] in _FORGIVEN
        end = self._event_ns if late else self._end_ns
        return end if end is not None else self.sent_ns

    def _failure(self) -> tuple[str, str] | None:
        """Kind and text; None of a success."""
        head = self._http.head
        if head is not None and not 200 <= head.status < 300:
            return f"http_{head.status}", _refusal(head, bytes(self._other))
        if self._failed is not None and (self._failed[0] not in _FORGIVEN or not self._complete):
            return ("stream_error", self._stream_error) if self._stream_error else self._failed
        if head is not None and not self._is_stream:
            return "not_a_stream", _not_a_stream(head, bytes(self._other))
        if self._stream_error is not None:
            return "stream_error", self._stream_error
        if not self.stamps:
            return "empty", "the server generated nothing"
        if not self._complete:
            return "truncated", "the stream ended with neither a finish reason nor [DONE]"
        return None

    def _noted(self) -> tuple[str, ...]:
        flags = set(self._flags)
        if self.reconnected:
            flags.add("reconnected")
        if self._is_stream and self._complete:
            flags |= {"no_done"} if self.done_ns is None else set()
            flags |= {"no_finish_reason"} if self._finish_reason is None else set()
            flags |= {"unterminated"} if self._failed is not None else set()
        return tuple(sorted(flags))


def _is_stream(head: Head) -> bool:
    plain = head.tokens("content-encoding") in ([], ["identity"])
    return 200 <= head.status < 300 and head.media_type == "text/event-stream" and plain


def _refusal(head: Head, body: bytes) -> str:
    """The server's message, and where or when it wants to be asked instead."""
    said = [error_text(body) or f"HTTP status {head.status} without a message"]
    said += [
        f"{name.title()}: {head.headers[name][:100]}" for name in ("retry-after", "location") if name in head.headers
    ]
    return "; ".join(said)


def _not_a_stream(head: Head, body: bytes) -> str:
    coding = head.headers.get("content-encoding")
    kind = f"{coding}-encoded " if coding else ""
    media = head.media_type or "data without a content type"
    return f"the server answered with {kind}{media} in place of an event stream: {error_text(body)[:200]}"
