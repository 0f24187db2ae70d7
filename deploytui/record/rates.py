"""Rates over time: the steady window of a repeat, the tokens inside it, and the limits a good request must hold."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from deploytui.profile.schema import Gates, Limits

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
        return self.before_ns[-1] + self.ends_ns[-1] - self.starts_ns[-1] if self.ends_ns else 0

    def tokens(self, rows: Iterable[tuple[int, int, int]]) -> float:
        """Output tokens that fell into the window, of rows (first token, last token, tokens): of each row the first
        where it came, the rest spread evenly from there to the last, because single tokens have no stamps.
        """
        whole, parts = 0, []
        starts, ends = self.starts_ns, self.ends_ns
        for first, last, count in rows:
            place = bisect_right(starts, first) - 1
            if place >= 0 and last <= ends[place]:
                whole += count
            else:
                parts.append(self._part(first, last, count))
        return fsum((whole, *parts))

    def _part(self, first: int, last: int, count: int) -> float:
        held = self._holds(first)
        if last <= first:
            return count if held else 0
        return (count - 1) * (self._until(last) - self._until(first)) / (last - first) + held

    def _holds(self, at_ns: int) -> bool:
        place = bisect_right(self.starts_ns, at_ns) - 1
        return place >= 0 and at_ns <= self.ends_ns[place]

    def _until(self, at_ns: int) -> int:
        """How much of the window lies before `at_ns` [ns]."""
        place = bisect_right(self.starts_ns, at_ns) - 1
        if place < 0:
            return 0
        return self.before_ns[place] + min(at_ns, self.ends_ns[place]) - self.starts_ns[place]


def full_window(sent_ns: Iterable[int], end_ns: Iterable[int], target: int, *, until_ns: int | None = None) -> Window:
    """When at least 90 % of `target` requests were active (sent, not ended; failed ones too), up to `until_ns`."""
    # One number a step: its time, and in the lowest bit whether it is a start, so that ends come first at one instant.
    steps = sorted([at_ns << 1 | 1 for at_ns in sent_ns] + [at_ns << 1 for at_ns in end_ns])
    starts: list[int] = []
    ends: list[int] = []
    active, full, since = 0, FULL * target, 0
    for step in steps:
        if step & 1:
            active += 1
            if active >= full > active - 1:
                since = step >> 1
        else:
            active -= 1
            if active < full <= active + 1 and step >> 1 > since:
                starts.append(since)
                ends.append(step >> 1)
    return _window(starts, ends, until_ns)


def _window(starts: list[int], ends: list[int], until_ns: int | None) -> Window:
    """Without what lies behind `until_ns`."""
    if until_ns is not None:
        starts = [start for start in starts if start < until_ns]
        ends = [min(end, until_ns) for end in ends[: len(starts)]]
    before, total = [], 0
    for start, end in zip(starts, ends, strict=True):
        before.append(total)
        total += end - start
    return Window(tuple(starts), tuple(ends), tuple(before))


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
