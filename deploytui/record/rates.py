"""Rates over time: the steady window of a repeat, the tokens inside it, and the requests that meet the gates."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from deploytui.definitions import tpot, ttft
from deploytui.profile.schema import Gates, Limits
from deploytui.record.trace import RequestRecord
from deploytui.units import NS

FULL = 0.9
"""The share of the target concurrency from which a load counts as steady."""


@dataclass(frozen=True, slots=True)
class Window:
    """The stretches of time in which the load was full, ascending; `before_ns` is their length up to each start."""

    starts_ns: tuple[int, ...]
    ends_ns: tuple[int, ...]
    before_ns: tuple[int, ...]

    @property
    def length_ns(self) -> int:
        """All stretches together [ns]."""
        return self.until(self.ends_ns[-1]) if self.ends_ns else 0

    def until(self, at_ns: int) -> int:
        """How much of the window lies before `at_ns` [ns]."""
        place = bisect_right(self.starts_ns, at_ns) - 1
        if place < 0:
            return 0
        return self.before_ns[place] + min(at_ns, self.ends_ns[place]) - self.starts_ns[place]

    def holds(self, at_ns: int) -> bool:
        """Whether the load was full at `at_ns`."""
        place = bisect_right(self.starts_ns, at_ns) - 1
        return place >= 0 and at_ns <= self.ends_ns[place]


def full_window(records: Sequence[RequestRecord], target: int) -> Window:
    """When at least 90 % of `target` requests were active (sent, not ended; failed ones too)."""
    steps = sorted([(r.sent_ns, 1) for r in records] + [(r.end_ns, -1) for r in records])
    starts: list[int] = []
    ends: list[int] = []
    before = [0]
    active, since = 0, None
    for at_ns, step in steps:
        active += step
        full = active >= FULL * target
        if full and since is None:
            since = at_ns
        elif not full and since is not None:
            if at_ns > since:
                starts.append(since)
                ends.append(at_ns)
                before.append(before[-1] + at_ns - since)
            since = None
    return Window(tuple(starts), tuple(ends), tuple(before[:-1]))


def tokens_within(record: RequestRecord, window: Window) -> float:
    """Output tokens of a request that fell into the window: the first where it came, the rest spread evenly from
    there to the last, because single tokens have no stamps.
    """
    first, last, count = record.first_token_ns, record.last_token_ns, record.output_tokens or 0
    if first is None or count == 0:
        return 0.0
    if last is None or last <= first:
        return count if window.holds(first) else 0.0
    rest = (count - 1) * (window.until(last) - window.until(first)) / (last - first)
    return rest + (1 if window.holds(first) else 0)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request must hold [s] to count for goodput; None where it is not asked."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    @property
    def asked(self) -> bool:
        """Whether anything is."""
        return any(limit is not None for limit in (self.ttft_s, self.tpot_s, self.e2e_s))


def request_limits(gates: Gates | None) -> RequestLimits:
    """The per-request gates; of a gate with several statistics the smallest limit."""
    if gates is None:
        return RequestLimits()
    return RequestLimits(_smallest(gates.max_ttft_ms), _smallest(gates.max_tpot_ms), _smallest(gates.max_e2e_ms))


def _smallest(limits: Limits | None) -> float | None:
    if limits is None:
        return None
    set_ms = [v for v in (limits.mean, limits.p50, limits.p90, limits.p95, limits.p99, limits.max) if v is not None]
    return min(set_ms) / 1e3 if set_ms else None


def meets(record: RequestRecord, limits: RequestLimits) -> bool | None:
    """Whether a request meets every limit; a failed one misses; None when its tokens are unknown but TPOT is asked.

    A reply of one token has no TPOT and can't miss it.
    """
    if not record.ok:
        return False
    if limits.tpot_s is not None and record.output_tokens is None:
        return None
    figures = (
        (ttft(record.sent_ns, record.first_token_ns), limits.ttft_s),
        (tpot(record.first_token_ns, record.last_token_ns, record.output_tokens), limits.tpot_s),
        ((record.end_ns - record.sent_ns) * NS, limits.e2e_s),
    )
    return all(limit is None or figure is None or figure <= limit for figure, limit in figures)
