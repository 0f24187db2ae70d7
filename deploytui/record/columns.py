"""What the figures of a repeat need of its requests, in columns: some 100 bytes a request, however long its answer."""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import filterfalse
from math import inf, isnan, nan

from deploytui.definitions import tpot
from deploytui.record.rates import RequestLimits
from deploytui.record.trace import CUT_OFF, RequestRecord
from deploytui.units import NS

LATENCIES = ("ttfr", "ttft", "ttfo", "tpot", "e2e", "ttft_scheduled", "e2e_scheduled", "connect")


class RequestColumns:
    """The requests of one repeat, added block by block; the order of the blocks does not matter."""

    def __init__(self) -> None:
        self.sent_ns, self.end_ns = array("q"), array("q")
        """Of all requests, shape (requests,)."""
        self.latencies = {name: array("d") for name in LATENCIES}
        """Of the successful requests that have it [s]; TTFT, TPOT and E2E of all of them in one order, shape (ok,), and
        NaN where a request has none, so that goodput can look at the three of one request."""
        self.first_token_ns, self.last_token_ns, self.tokens = array("q"), array("q"), array("q")
        """Of the successful requests with tokens of a known number."""
        self.ok = 0
        self.begin_ns: int | None = None
        """The first send; None of no request."""
        self.completed_ns: int | None = None
        """The last end that was not a cut; None when there was none."""
        self.cut_sent_ns: int | None = None
        """The first send of a request that the load's end cut off; None when none was."""
        self.lengths: Counter[tuple[int | None, int]] = Counter()
        """Successful requests by the length each was itself asked for (None: the workload's) and its output tokens."""
        self.uncounted = self.uncounted_stops = 0
        """Successful requests whose tokens are unknown, and those of them that stopped by themselves."""
        self.prompt_tokens: Counter[int] = Counter()
        self.cached_tokens: int | None = None
        """None while no request tells."""
        self.chunk_tokens = self.chunks = 0
        """Output tokens and chunks of the requests that have both."""
        self.reads = self.multi_chunk_reads = 0
        self.errors: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.first_error = ""
        """What the first failed request was answered; one that was cut off tells only when no other failed."""
        self._first_error_at = (True, 0, 0)

    @property
    def requests(self) -> int:
        """All of them."""
        return len(self.sent_ns)

    @property
    def attempted(self) -> int:
        """All but those that the load's end cut off."""
        return self.requests - self.errors[CUT_OFF]

    def add(self, block: Sequence[RequestRecord]) -> None:
        """Take in more requests."""
        if not block:
            return
        sent_ns = [record.sent_ns for record in block]
        self.sent_ns.extend(sent_ns)
        self.end_ns.extend([record.end_ns for record in block])
        self.begin_ns = _least(self.begin_ns, sent_ns)
        self.reads += sum([record.reads for record in block])
        self.multi_chunk_reads += sum([record.multi_chunk_reads for record in block])
        self.flags.update([flag for record in block for flag in record.flags])
        done = [record for record in block if record.ok]
        if len(done) < len(block):
            self._add_failed([record for record in block if not record.ok])
        if done:
            self._add_done(done)

    def _add_failed(self, failed: Sequence[RequestRecord]) -> None:
        self.errors.update([record.error_kind or "unknown" for record in failed])
        self._complete([record.end_ns for record in failed if record.error_kind != CUT_OFF])
        cut_ns = [record.sent_ns for record in failed if record.error_kind == CUT_OFF]
        self.cut_sent_ns = _least(self.cut_sent_ns, cut_ns)
        for record in failed:
            at = (record.error_kind == CUT_OFF, record.end_ns, record.id)
            if not self.first_error or at < self._first_error_at:
                self.first_error, self._first_error_at = record.error or record.error_kind or "", at

    def _add_done(self, done: Sequence[RequestRecord]) -> None:
        self.ok += len(done)
        self._complete([record.end_ns for record in done])
        self._add_latencies(done)
        self._add_counts(done)
        rows = [
            (first, first if r.last_token_ns is None else r.last_token_ns, r.output_tokens)
            for r in done
            if r.output_tokens and (first := r.first_token_ns) is not None
        ]
        self.first_token_ns.extend([first for first, _, _ in rows])
        self.last_token_ns.extend([last for _, last, _ in rows])
        self.tokens.extend([count for _, _, count in rows])

    def _add_latencies(self, done: Sequence[RequestRecord]) -> None:
        to = {name: column.extend for name, column in self.latencies.items()}
        to["ttft"]([nan if (at := r.first_token_ns) is None else (at - r.sent_ns) * NS for r in done])
        each = [tpot(r.first_token_ns, r.last_token_ns, r.output_tokens) for r in done]
        to["tpot"]([nan if value is None else value for value in each])
        to["e2e"]([(r.end_ns - r.sent_ns) * NS for r in done])
        to["ttfr"]([(at - r.sent_ns) * NS for r in done if (at := r.first_chunk_ns) is not None])
        to["ttfo"]([(at - r.sent_ns) * NS for r in done if (at := r.first_content_ns) is not None])
        to["connect"]([took * NS for r in done if (took := r.connect_ns) is not None])
        due = [(at, r.first_token_ns, r.end_ns) for r in done if (at := r.scheduled_ns) is not None]
        to["ttft_scheduled"]([(first - at) * NS for at, first, _ in due if first is not None])
        to["e2e_scheduled"]([(end - at) * NS for at, _, end in due])

    def _add_counts(self, done: Sequence[RequestRecord]) -> None:
        lengths = Counter([(r.asked_tokens, r.output_tokens) for r in done])
        self.lengths.update({(asked, count): n for (asked, count), n in lengths.items() if count is not None})
        uncounted = [r.finish_reason for r in done if r.output_tokens is None]
        self.uncounted += len(uncounted)
        self.uncounted_stops += uncounted.count("stop")
        self.prompt_tokens.update([count for r in done if (count := r.prompt_tokens) is not None])
        cached = [count for r in done if (count := r.cached_tokens) is not None]
        if cached:
            self.cached_tokens = (self.cached_tokens or 0) + sum(cached)
        chunked = [(r.output_tokens, r.chunks) for r in done if r.output_tokens is not None and r.chunks > 0]
        self.chunk_tokens += sum([count for count, _ in chunked])
        self.chunks += sum([chunks for _, chunks in chunked])

    def _complete(self, ends_ns: Sequence[int]) -> None:
        if ends_ns:
            last_ns = max(ends_ns)
            self.completed_ns = last_ns if self.completed_ns is None else max(self.completed_ns, last_ns)

    def known(self, latency: str) -> list[float]:
        """A latency of all successful requests that have it [s]."""
        return list(filterfalse(isnan, self.latencies[latency]))

    def good(self, limits: RequestLimits) -> int | None:
        """How many requests meet every limit; a failed one misses, what one has not can't miss (a reply of one token
        has no TPOT). None when TPOT is asked for and the tokens of a successful request are unknown.
        """
        if limits.tpot_s is not None and self.uncounted:
            return None
        most = [inf if limit is None else limit for limit in (limits.ttft_s, limits.tpot_s, limits.e2e_s)]
        rows = zip(*(self.latencies[name] for name in ("ttft", "tpot", "e2e")), strict=True)
        return sum(not (ttft > most[0] or tpot > most[1] or e2e > most[2]) for ttft, tpot, e2e in rows)


def _least(known: int | None, more: Sequence[int]) -> int | None:
    if not more:
        return known
    least = min(more)
    return least if known is None else min(known, least)
