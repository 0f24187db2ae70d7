"""Whether a start stands still: nothing in its log, no work of its processes, none on its GPUs."""

from msgspec import Struct

BUSY_SHARE = 0.05
"""Of one core: an engine that only waits wakes up now and then."""
GPU_BUSY = 1.0
"""Utilisation of a device above which it works [%]."""
GROWN_BYTES = 1 << 20
"""A change of resident memory that is work: weights that are mapped come in without much processor time."""


class Activity(Struct, frozen=True, kw_only=True):
    """What an engine did so far; figures None where nobody tells."""

    log_bytes: int
    cpu_s: float | None = None
    """Processor time of all its processes."""
    resident_bytes: int | None = None
    gpu_percent: float | None = None
    """Of the busiest of its GPUs, over the last second."""


class Stall:
    """Watches a start; times are those of one monotonic clock [s]."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._still_since: float | None = None
        self._last: tuple[float, Activity] | None = None

    def stands_still(self, now_s: float, seen: Activity) -> bool:
        """Whether nothing has happened for the limit; never where its processor time is not told."""
        if self._moved(now_s, seen):
            self._still_since = now_s
        self._last = (now_s, seen)
        return self._still_since is not None and now_s - self._still_since >= self.limit_s

    def _moved(self, now_s: float, seen: Activity) -> bool:
        if self._last is None or seen.cpu_s is None or self._last[1].cpu_s is None:
            return True
        at_s, before = self._last
        busy_s = abs(seen.cpu_s - (before.cpu_s or 0.0))  # less than before: a process ended
        return (
            seen.log_bytes != before.log_bytes
            or (seen.gpu_percent or 0.0) > GPU_BUSY
            or busy_s > BUSY_SHARE * (now_s - at_s)
            or abs((seen.resident_bytes or 0) - (before.resident_bytes or 0)) > GROWN_BYTES
        )
