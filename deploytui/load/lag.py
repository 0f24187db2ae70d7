"""How late the worker's own event loop is: the error that the load generator may add to its stamps."""

import asyncio
import time
from array import array

from deploytui.definitions import percentile

PERIOD_S = 0.02
"""Between two looks [s]; asyncio rounds timers up to whole milliseconds, so an idle loop shows up to 1 ms."""


class LagMeter:
    """A timer that notes how late it is called, and the share of a core the process used meanwhile."""

    def __init__(self) -> None:
        self._late_ms = array("d")
        self._loop = asyncio.get_running_loop()
        self._cpu_s, self._wall_s = time.process_time(), time.monotonic()
        self._timer = self._again()

    def stop(self) -> tuple[float | None, float | None, float | None]:
        """Lag p99 and max [ms] and share of one core; None where the load was too short to tell."""
        self._timer.cancel()
        wall_s = time.monotonic() - self._wall_s
        late = sorted(self._late_ms)
        share = (time.process_time() - self._cpu_s) / wall_s if wall_s > 0 else None
        return percentile(late, 99), late[-1] if late else None, share

    def _again(self) -> asyncio.TimerHandle:
        self._due_s = self._loop.time() + PERIOD_S
        return self._loop.call_at(self._due_s, self._look)

    def _look(self) -> None:
        self._late_ms.append(max(self._loop.time() - self._due_s, 0.0) * 1e3)
        self._timer = self._again()
