"""How long bytes waited for the worker, and what that did to them: the error that the load generator itself may add."""

from collections.abc import Callable
from dataclasses import dataclass, field

FINE_NS = 1 << 13
COARSE_NS = 1 << 20
_FINE_BITS, _COARSE_BITS, _CELLS = 13, 20, 4096

LATE_NS = 1_000_000
"""A read that may have waited longer than this is late: chunks that met in it may have come apart [ns]."""
TOO_FEW = 100
"""With fewer prompt reads than this they do not tell how a server packs its chunks."""


@dataclass(slots=True)
class Meter:
    """Counts over all reads of a load; waits are kept in cells of 8 µs up to 34 ms, of 1 ms up to 4 s."""

    reads: int = 0
    merged: int = 0
    """Reads that held several generated chunks."""
    late_merged: int = 0
    """Those of them that may have waited longer than `LATE_NS`."""
    count: Callable[[int], None] = field(init=False, repr=False, compare=False)
    """`add`, once for all connections: one of its own for each would be one more thing to fetch at each read."""
    _longest_ns: int = -1
    _fine: list[int] = field(default_factory=lambda: [0] * _CELLS)
    _coarse: list[int] = field(default_factory=lambda: [0] * (_CELLS + 1))

    def __post_init__(self) -> None:
        self.count = self.add

    def add(self, waited_ns: int) -> None:
        """Count a read that waited so long."""
        self.reads += 1
        cell = waited_ns >> _FINE_BITS
        if cell < _CELLS:
            self._fine[cell] += 1
        else:
            self._coarse[min(waited_ns >> _COARSE_BITS, _CELLS)] += 1
        if waited_ns > self._longest_ns:  # noqa: PLR1730, a call for each read costs more
            self._longest_ns = waited_ns

    def add_merged(self, *, late: bool) -> None:
        """Say of the read that was counted last that it held several generated chunks."""
        self.merged += 1
        self.late_merged += late

    @property
    def late(self) -> int:
        """Reads that waited longer than `LATE_NS`."""
        return self.reads - sum(self._fine[: LATE_NS >> _FINE_BITS])

    def percentile_ms(self, q: float) -> float | None:
        """A percentile of the waits, rounded up to the end of its cell [ms]; None before any read."""
        if not self.reads:
            return None
        left = max(1, -(-self.reads * q // 100))
        for width, cells in ((FINE_NS, self._fine), (COARSE_NS, self._coarse[:_CELLS])):
            for place, count in enumerate(cells):
                left -= count
                if left <= 0:
                    return min((place + 1) * width, self._longest_ns) / 1e6
        return self._longest_ns / 1e6

    @property
    def max_ms(self) -> float | None:
        """The longest wait [ms]; None before any read."""
        return self._longest_ns / 1e6 if self.reads else None

    @property
    def extra_merged(self) -> int:
        """Merged reads beyond what prompt reads say of the server's own packing: those that lateness made."""
        prompt = self.reads - self.late
        own_share = (self.merged - self.late_merged) / prompt if prompt >= TOO_FEW else 0.0
        return max(0, round(self.late_merged - own_share * self.late))
