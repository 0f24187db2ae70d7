"""The gaps between generated chunks: exact figures of any number of them, pooled from counts.

Percentiles are found in two steps. Coarse counts say in which cell of 16 µs a rank lies, fine counts of those few cells
which gap it is. So nobody holds or sorts the gaps themselves, and repeats pool by adding their counts.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from math import sqrt
from typing import Protocol

from msgspec import Struct

from deploytui.definitions import PERCENTILES, percentile_place, samples_needed
from deploytui.record.facts import Distribution
from deploytui.units import NS

CELL_BITS = 14
"""A cell is 2 to this power wide [ns]; cell k begins at k times that."""
BURST_NS = 200_000
"""Gaps under this [ns] are no decode steps: the chunks left the server, or a buffer, together."""


class GapTotals(Struct, frozen=True, kw_only=True):
    """Sums over gaps in whole numbers, so that no order of adding changes them; `min_ns` and `max_ns` None of none."""

    n: int = 0
    sum_ns: int = 0
    sum_squares: int = 0
    """[ns²]"""
    min_ns: int | None = None
    max_ns: int | None = None
    bursts: int = 0
    """How many are under `BURST_NS`."""


class Gaps(Protocol):
    """The gaps between the generated chunks of each successful request of one repeat."""

    @property
    def totals(self) -> GapTotals:
        """Of all gaps."""

    def coarse(self) -> Mapping[int, int]:
        """How many gaps lie in each cell."""

    def fine(self, cells: Collection[int]) -> Mapping[int, int]:
        """How often each gap [ns] of these cells occurs."""


class ListedGaps:
    """Few gaps [ns], held in a list."""

    def __init__(self, gaps_ns: Iterable[int] = ()) -> None:
        self._gaps_ns = list(gaps_ns)

    @property
    def totals(self) -> GapTotals:
        """Of all gaps."""
        return totals_of(self._gaps_ns)

    def coarse(self) -> Mapping[int, int]:
        """How many gaps lie in each cell."""
        return Counter(gap >> CELL_BITS for gap in self._gaps_ns)

    def fine(self, cells: Collection[int]) -> Mapping[int, int]:
        """How often each gap [ns] of these cells occurs."""
        return Counter(gap for gap in self._gaps_ns if gap >> CELL_BITS in cells)


def totals_of(gaps_ns: Sequence[int]) -> GapTotals:
    """The totals of gaps in a list [ns]."""
    return GapTotals(
        n=len(gaps_ns),
        sum_ns=sum(gaps_ns),
        sum_squares=sum(gap * gap for gap in gaps_ns),
        min_ns=min(gaps_ns, default=None),
        max_ns=max(gaps_ns, default=None),
        bursts=sum(gap < BURST_NS for gap in gaps_ns),
    )


def together(totals: Iterable[GapTotals]) -> GapTotals:
    """The totals of several sets of gaps."""
    rows = list(totals)
    return GapTotals(
        n=sum(row.n for row in rows),
        sum_ns=sum(row.sum_ns for row in rows),
        sum_squares=sum(row.sum_squares for row in rows),
        min_ns=min((row.min_ns for row in rows if row.min_ns is not None), default=None),
        max_ns=max((row.max_ns for row in rows if row.max_ns is not None), default=None),
        bursts=sum(row.bursts for row in rows),
    )


def gap_distribution(pooled: Sequence[Gaps]) -> Distribution:
    """The distribution of all gaps of all repeats together [s]."""
    totals = together(gaps.totals for gaps in pooled)
    n = totals.n
    if n == 0 or totals.min_ns is None or totals.max_ns is None:
        return Distribution(n=0)
    asked = {name: percentile_place(n, q) for name, q in PERCENTILES.items() if n >= samples_needed(name)}
    at = _at_ranks(pooled, {rank for low, high, _ in asked.values() for rank in (low, high)})
    known = {name: at[low] + (at[high] - at[low]) * part for name, (low, high, part) in asked.items()}
    square = n * totals.sum_squares - totals.sum_ns**2
    return Distribution(
        n=n,
        mean=totals.sum_ns / n * NS,
        std=sqrt(square / (n * (n - 1))) * NS if n > 1 else None,
        min=totals.min_ns * NS,
        max=totals.max_ns * NS,
        **{name: known.get(name) for name in PERCENTILES},
    )


def burst_share(pooled: Sequence[Gaps]) -> float | None:
    """Share of the gaps that are no decode steps; None of no gap."""
    totals = together(gaps.totals for gaps in pooled)
    return totals.bursts / totals.n if totals.n else None


def median_step_s(pooled: Sequence[Gaps]) -> float | None:
    """The median of the gaps that are decode steps [s]: chunks that were sent together count once; None of none."""
    totals = together(gaps.totals for gaps in pooled)
    steps = totals.n - totals.bursts
    if steps == 0:
        return None
    low, high, part = percentile_place(steps, 50)
    at = _at_ranks(pooled, {totals.bursts + low, totals.bursts + high})
    return at[totals.bursts + low] + (at[totals.bursts + high] - at[totals.bursts + low]) * part


def _at_ranks(pooled: Sequence[Gaps], ranks: Collection[int]) -> dict[int, float]:
    """The gaps at these ranks, counted from 0 [s]."""
    cells = _sum_counts(gaps.coarse() for gaps in pooled)
    opened = set(_keys_at(cells, ranks).values())
    fine = _sum_counts(gaps.fine(opened) for gaps in pooled)
    closed = {cell << CELL_BITS: count for cell, count in cells.items() if cell not in opened}
    return {rank: gap_ns * NS for rank, gap_ns in _keys_at({**closed, **fine}, ranks).items()}


def _keys_at(counts: Mapping[int, int], ranks: Collection[int]) -> dict[int, int]:
    """The key under which each rank falls, when all keys stand in a row, each as often as it counts."""
    keys = sorted(counts)
    ends = list(accumulate(counts[key] for key in keys))
    return {rank: keys[bisect_right(ends, rank)] for rank in ranks}


def _sum_counts(parts: Iterable[Mapping[int, int]]) -> Mapping[int, int]:
    first, *rest = parts
    if not rest:
        return first
    total = Counter(first)
    for part in rest:
        total.update(part)
    return total
