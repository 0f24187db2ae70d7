"""The gaps of a repeat, counted from its stamps files block by block with NumPy: import this only behind a load.

A file is read once for the totals and the coarse counts, and once more for the cells that percentiles fall in.
"""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deploytui.load.stamps import MAGIC, BadStamps
from deploytui.record.gaps import BURST_NS, CELL_BITS, GapTotals, together, totals_of

BLOCK_WORDS = 1 << 17
"""How much of a file is looked at at once [8 bytes]: small enough for a processor's cache."""
HEADER_WORDS = 3
LONG_BITS = 32
"""Gaps of 2 to this power [ns] or more, over 4 s, are counted one by one, as are those under 0."""

_CELL = 1 << CELL_BITS
Words = NDArray[np.int64]


class StampsFile(NamedTuple):
    """A stamps sidecar, and which of its requests were answered well."""

    path: Path
    ok_ids: "array[int]"


class StampGaps:
    """The gaps of the successful requests of one repeat, from the stamps files of all its workers."""

    def __init__(self, files: Sequence[StampsFile]) -> None:
        self._files = files
        self._opened: dict[int, Words] = {}

    @property
    def totals(self) -> GapTotals:
        """Of all gaps."""
        return self._summed.totals

    def coarse(self) -> Mapping[int, int]:
        """How many gaps lie in each cell."""
        summed = self._summed
        long = (gap >> CELL_BITS for gap in summed.long)
        return _add_each(_counted(summed.cells), long)

    def fine(self, cells: Collection[int]) -> Mapping[int, int]:
        """How often each gap [ns] of these cells occurs."""
        self._open({cell for cell in cells if _is_short(cell)} - self._opened.keys())
        counts: dict[int, int] = {}
        for cell in cells:
            if cell in self._opened:
                counts |= _counted(self._opened[cell], cell << CELL_BITS)
        return _add_each(counts, (gap for gap in self._summed.long if gap >> CELL_BITS in cells))

    @cached_property
    def _summed(self) -> "_Summed":
        return _sum_up(self._blocks())

    def _open(self, cells: Collection[int]) -> None:
        if not cells:
            return
        opened = {cell: np.zeros(_CELL, np.int64) for cell in cells}
        for gaps in self._blocks():
            places = gaps >> CELL_BITS
            for cell in cells:
                opened[cell] += np.bincount(gaps[places == cell] & (_CELL - 1), minlength=_CELL)
        self._opened |= opened

    def _blocks(self) -> Iterator[Words]:
        for file in self._files:
            yield from gap_blocks(file)


class _Summed(NamedTuple):
    """What the first reading gives."""

    totals: GapTotals
    cells: Words
    """How many gaps lie in each cell, shape (cells up to the longest gap's,)."""
    long: list[int]
    """The gaps that have no cell there [ns]."""


def _sum_up(blocks: Iterator[Words]) -> _Summed:
    totals: list[GapTotals] = []
    cells = np.zeros(0, np.int64)
    long: list[int] = []
    for block in blocks:
        gaps = block
        if (odd := (block < 0) | (block >> LONG_BITS > 0)).any():
            long += block[odd].tolist()
            gaps = block[~odd]
        if gaps.size:
            totals.append(_totals(gaps))
            cells = _longer_sum(cells, np.bincount(gaps >> CELL_BITS))
    return _Summed(together([*totals, totals_of(long)]), cells, long)


def _totals(gaps: Words) -> GapTotals:
    """Of gaps from 0 to 2**32 [ns], whose squares fit 64 bits though their sum does not."""
    squares = gaps.astype(np.uint64) ** 2
    high, low = int((squares >> np.uint64(32)).sum()), int((squares & np.uint64(0xFFFFFFFF)).sum())
    return GapTotals(
        n=gaps.size,
        sum_ns=int(gaps.sum()),
        sum_squares=(high << 32) + low,
        min_ns=int(gaps.min()),
        max_ns=int(gaps.max()),
        bursts=int(np.count_nonzero(gaps < BURST_NS)),
    )


def gap_blocks(file: StampsFile) -> Iterator[Words]:
    """The gaps [ns] between the stamps of each successful request, some at a time. Raises BadStamps."""
    ok_ids = np.sort(np.array(file.ok_ids, np.int64))
    for words, heads in _entries(file.path):
        well = _are_in(words[heads] & 0xFFFFFFFF, ok_ids)
        keep = _step_ends(heads, len(words))
        ends = np.append(heads[1:], len(words))
        for begin, end in zip(heads[~well].tolist(), ends[~well].tolist(), strict=True):
            keep[begin:end] = False
        yield np.diff(words)[keep[1:]]


def _are_in(ids: Words, known: Words) -> NDArray[np.bool_]:
    """Which ids are among the known, which ascend."""
    if not known.size:
        return np.zeros(len(ids), bool)
    places = np.searchsorted(known, ids).clip(max=len(known) - 1)
    found: NDArray[np.bool_] = known[places] == ids
    return found


def _step_ends(heads: Words, size: int) -> NDArray[np.bool_]:
    """Which words end a gap: all stamps but the first of each entry."""
    keep = np.ones(size + 1, bool)
    for place in range(HEADER_WORDS + 1):
        keep[heads + place] = False
    return keep[:size]


def _entries(path: Path) -> Iterator[tuple[Words, Words]]:
    """Blocks of whole entries as 8-byte words, each with the places of its headers; a cut-off end is left out."""
    with path.open("rb") as file:
        if (mark := file.read(len(MAGIC))) != MAGIC:
            raise BadStamps(f"{path} begins with {mark!r} where chunk stamps begin with {MAGIC!r}")
        left = np.zeros(0, np.int64)
        while (block := np.fromfile(file, "<i8", BLOCK_WORDS)).size:
            words = np.concatenate((left, block.astype(np.int64, copy=False)))
            heads, end = _heads(words)
            if heads:
                yield words[:end], np.array(heads)
            left = words[end:]


def _heads(words: Words) -> tuple[list[int], int]:
    """Where the whole entries begin, and where the last of them ends; an entry's length stands in its first word."""
    heads, at, row = [], 0, words.data
    while at + HEADER_WORDS <= len(row):
        end = at + HEADER_WORDS + (row[at] >> 32 & 0xFFFFFFFF)
        if end > len(row):
            break
        heads.append(at)
        at = end
    return heads, at


def _is_short(cell: int) -> bool:
    return 0 <= cell < 1 << (LONG_BITS - CELL_BITS)


def _counted(counts: Words, begin: int = 0) -> dict[int, int]:
    """The counts that are not 0, by their place."""
    places = np.flatnonzero(counts)
    return dict(zip((places + begin).tolist(), counts[places].tolist(), strict=True))


def _add_each(counts: dict[int, int], keys: Iterator[int]) -> dict[int, int]:
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return counts


def _longer_sum(one: Words, other: Words) -> Words:
    """Place by place, as long as the longer."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    longer[: len(shorter)] += shorter
    return longer
