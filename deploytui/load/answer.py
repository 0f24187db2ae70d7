"""One response folded into its record: reads with their stamps go in, a RequestRecord and chunk stamps come out."""

from array import array
from dataclasses import dataclass, field

from deploytui.load.chunks import DONE, TEXT_CAP, UNKNOWN, Chunk, Usage, is_whole, parse
from deploytui.load.head import Head
from deploytui.load.http1 import ResponseReader
from deploytui.load.kernel_clock import KERNEL, MIXED, USER
from deploytui.load.outcome import record_of
from deploytui.load.quick import is_begun, plain_text, text_of, token, tokens, whole_events
from deploytui.load.sse import EVENT_CAP, Event, EventReader
from deploytui.record.trace import RequestRecord

OTHER_CAP = 16 << 10
"""Most of a body that is no event stream that is kept for its message [bytes]."""

LAST_EVENTS = 3
"""What ends most streams: the finish reason, the usage, `[DONE]`."""


class _Touched:
    """What each token touches lies together: with a thousand streams every line of memory is fetched anew."""

    __slots__ = ("_flows", "done_ns", "keep_text", "over", "reads", "stamps")


@dataclass(slots=True, kw_only=True, eq=False)
class Answer(_Touched):
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
    user_reads: int = 0
    """Those of them that the kernel did not stamp."""
    late_merged: int = 0
    """Reads of several generated chunks that this process came late for."""
    scheduled_ns: int | None = None
    conversation: int | None = None
    retried: bool = False
    multi_chunk_reads: int = 0
    first_chunk_ns: int | None = None
    first_content_ns: int | None = None
    event_ns: int | None = None
    _read_ns: int = 0
    end_ns: int | None = None
    finish_reason: str | None = None
    usage: Usage = UNKNOWN
    failed: tuple[str, str] | None = None
    """How the connection failed: kind and text."""
    stream_error: str | None = None
    flags: set[str] = field(default_factory=set)
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    tool_call: bool = False
    is_stream: bool = False
    _between_events: bool = False
    """Whether the next byte, or the first of `_rest`, begins an HTTP chunk and an event."""
    _flows: bool = False
    """Whether it is under way and the next byte begins an HTTP chunk and an event."""
    _rest: bytes = b""
    """An HTTP chunk that has begun, whose event is not whole yet."""
    other: bytearray = field(default_factory=bytearray)
    http: ResponseReader = field(default_factory=ResponseReader)
    _sse: EventReader = field(default_factory=EventReader)

    def read(self, data: bytes, at_ns: int, kernel: bool = False) -> int:
        """Take what one read brought; all its events share its stamp. How many generated chunks it held."""
        if self.over:
            return 0
        self.reads += 1
        if not kernel:
            self.user_reads += 1
        if self._flows and (text := token(data)):
            self.stamps.append(at_ns)
            if self.keep_text:
                self.content.append(text)
            return 1
        before = len(self.stamps)
        self._read_ns = at_ns
        self._take_any(data, at_ns)
        self._flows = self._between_events and not self._rest and self._is_under_way
        chunks = len(self.stamps) - before
        if chunks > 1:
            self.multi_chunk_reads += 1
        return chunks

    @property
    def _is_under_way(self) -> bool:
        """Whether its first content came and its end did not."""
        return self.first_content_ns is not None and self.done_ns is None

    def _take_many(self, payloads: list[bytes], at_ns: int) -> None:
        """Events that came whole: plain text all at once where it can be, the rest one by one."""
        place = 0
        while place < len(payloads) and not self._is_under_way:
            self._take(Event(payloads[place]), at_ns)
            place += 1
        last = len(payloads) - LAST_EVENTS if payloads[-1:] == [DONE] else len(payloads)
        if last > place + 1:
            self._take_middle(payloads[place:last], at_ns)
            place = last
        for payload in payloads[place:]:
            self._take(Event(payload), at_ns)

    def _take_middle(self, payloads: list[bytes], at_ns: int) -> None:
        """Several events under way, of which most are plain text."""
        if found := tokens(payloads):
            self.stamps.extend([at_ns] * len(found))
            if self.keep_text:
                self.content += map(text_of, found)
            return
        for payload in payloads:
            if text := plain_text(payload) if self._is_under_way else None:
                self.stamps.append(at_ns)
                if self.keep_text:
                    self.content.append(text)
            else:
                self._take(Event(payload), at_ns)

    def _take_any(self, data: bytes, at_ns: int) -> None:
        """The short way for whole events, the long way for what stands before and behind them."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        if not self._between_events and (end := self._next_boundary(data)):
            self._take_bytes(data[:end], at_ns)
            data = data[end:]
        if self._between_events:
            payloads, data = whole_events(data)
            self._take_many(payloads, at_ns)
            if is_begun(data):
                self._rest = data
                return
        if data:
            self._take_bytes(data, at_ns)

    def _next_boundary(self, data: bytes) -> int:
        """Where the head ends, or perhaps a chunk that a read cut; 0 where neither does."""
        if self.is_stream:
            return data.find(b"\r\n") + 2 if b"\r\n" in data else 0
        return data.find(b"\r\n\r\n") + 4 if self.http.head is None and b"\r\n\r\n" in data else 0

    def _take_bytes(self, data: bytes, at_ns: int) -> None:
        headless = self.http.head is None
        body = self.http.feed(data)
        if headless and self.http.head is not None:
            self.is_stream = self.http.head.is_event_stream
        if body:
            self._take_body(body, at_ns)
        if self.http.bad is not None:
            self.fail("bad_response", self.http.bad, at_ns)
        elif self.http.over and not self.over:
            self._take_end(at_ns)
        self._between_events = self.is_stream and self.http.between_chunks and self._sse.between_events

    def begin(self, head: Head) -> None:
        """Take the head from a library that reads HTTP itself; reads then bring the body alone, `eof` its whole end."""
        self.http.begin_body(head)
        self.is_stream = head.is_event_stream

    def eof(self, at_ns: int) -> None:
        """The peer closed the connection."""
        if self.over:
            return
        if self._rest:
            self._take_bytes(self._rest, self._read_ns)
        cut_short = self.http.eof()
        if self.http.head is None:
            self.fail("reset", "the server closed the connection without answering", at_ns)
        elif not cut_short:
            self._take_end(at_ns)
        else:
            self._take_unterminated()
            self.fail("truncated", "the connection was closed in the middle of the response", at_ns)

    def fail(self, kind: str, text: str, at_ns: int) -> None:
        """The response can't go on, for a reason of the connection; the first reason stays."""
        if not self.over:
            self.failed = (kind, text[:TEXT_CAP])
            self._finish(at_ns)

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        return self.failed is None and self.http.reusable

    @property
    def clock(self) -> str:
        """Who stamped its reads; this process where there was none."""
        if self.user_reads == self.reads:
            return USER
        return MIXED if self.user_reads else KERNEL

    @property
    def clocks(self) -> set[str]:
        """The clocks that stamped its reads."""
        return {word for word, used in ((KERNEL, self.user_reads < self.reads), (USER, self.user_reads)) if used}

    @property
    def unanswered(self) -> bool:
        """Whether the connection ended before any byte of the reply."""
        return self.failed is not None and self.failed[0] == "reset" and not self.reads

    @property
    def status(self) -> int | None:
        """The HTTP status; None before it came."""
        return None if self.http.head is None else self.http.head.status

    @property
    def retry_after(self) -> str | None:
        """When a server that refused wants to be asked again, in its own words; None where it does not say."""
        return None if self.http.head is None else self.http.head.headers.get("retry-after")

    @property
    def signs_of_life(self) -> int:
        """Comment lines so far, by which a server says that it still works on the prompt."""
        return self._sse.comments

    def record(self) -> RequestRecord:
        """The record of the response, once it is over."""
        return record_of(self)

    def _take_body(self, body: bytes, at_ns: int) -> None:
        if not self.is_stream:
            self.other += body[: OTHER_CAP - len(self.other)]
            return
        for event in self._sse.feed(body):
            self._take(event, at_ns)
        if self._sse.too_long:
            self.fail("line_too_long", f"a line or event of the stream is longer than {EVENT_CAP >> 20} MiB", at_ns)

    def _take(self, event: Event, at_ns: int) -> None:
        if self.done_ns is not None:
            return
        self.event_ns = at_ns
        if self.first_chunk_ns is None:
            self.first_chunk_ns = at_ns
        chunk = parse(event)
        if chunk.done:
            self.done_ns = at_ns
            return
        if chunk.generated:
            self._take_text(chunk, at_ns)
        if chunk.usage is not None:
            self._take_usage(chunk.usage)
        self.finish_reason = chunk.finish_reason or self.finish_reason
        if chunk.bad_text:
            self.flags.add("bad_utf8")
        if chunk.error is not None and self.stream_error is None:
            self.stream_error = chunk.error

    def _take_text(self, chunk: Chunk, at_ns: int) -> None:
        self.stamps.append(at_ns)
        if self.first_content_ns is None and (chunk.content or chunk.tool_call):
            self.first_content_ns = at_ns
        self.tool_call = self.tool_call or chunk.tool_call
        if self.keep_text:
            self.content.append(chunk.content)
            if chunk.reasoning:
                self.reasoning.append(chunk.reasoning)

    def _take_usage(self, usage: Usage) -> None:
        if self.usage.is_above(usage):
            self.flags.add("usage_fell")
        self.usage = self.usage.at_least(usage)

    def _take_unterminated(self) -> None:
        """A last event without its empty line; it was there with the last bytes, not when the connection closed."""
        event = self._sse.unterminated() if self.is_stream else None
        if event is not None and self.done_ns is None and is_whole(event.data):
            self.flags.add("unterminated")
            self._take(event, self._read_ns)

    def _take_end(self, at_ns: int) -> None:
        self._take_unterminated()
        self._finish(at_ns)

    def _finish(self, at_ns: int) -> None:
        self.over = True
        self.end_ns = at_ns
