"""The closed loop: a fixed number of users, each asks its next question when the last one is answered."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from deploytui.load.answer import Answer
from deploytui.load.exchange import User
from deploytui.load.kernel_clock import KernelClock
from deploytui.load.lag import LagMeter
from deploytui.load.orders import LoadOrder, Report, Snapshot
from deploytui.load.render import Request
from deploytui.load.tally import Tally
from deploytui.load.wire import clock_of
from deploytui.record.trace import RequestRecord

SNAPSHOT_S = 0.15
"""Between two snapshots [s]."""


class ClosedLoad:
    """One load under way; `finished` gets each request once it is over."""

    def __init__(
        self,
        order: LoadOrder,
        requests: list[Request],
        users: list[User],
        finished: Callable[[Answer, RequestRecord], None],
    ) -> None:
        self._think_s = order.think_time_s
        self._waiting = deque(requests)
        self._users = users
        self._finished = finished
        self._tally = Tally(total=len(requests))
        self._clocks: set[str] = set()

    async def run(self, halt: asyncio.Future[None], clock: KernelClock) -> Report:
        """Ask all questions, or as many as are answered when `halt` is set; gives the report.

        `clock` is the one that its connections share.
        """
        lag, started_ns = LagMeter(), time.monotonic_ns()
        work = asyncio.ensure_future(self._all())
        await asyncio.wait({work, halt}, return_when=asyncio.FIRST_COMPLETED)
        cancelled = not work.done()
        work.cancel()
        await asyncio.wait({work})
        if not work.cancelled():
            work.result()
        ended_ns = time.monotonic_ns()
        p99, worst, share = lag.stop()
        return Report(
            at_ns=ended_ns,
            requests=self._tally.done,
            ok=self._tally.done - self._tally.failed,
            started_ns=started_ns,
            ended_ns=ended_ns,
            clock=clock_of(self._clocks),
            clock_jumps=clock.jumps,
            lag_ms_p99=p99,
            lag_ms_max=worst,
            cpu_share=share,
            cancelled=cancelled,
        )

    def snapshot(self) -> Snapshot:
        """Where the load is."""
        under_way = [user.under_way for user in self._users if user.under_way is not None]
        return self._tally.snapshot(time.monotonic_ns(), under_way)

    async def _all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for user in self._users:
                group.create_task(self._one(user))

    async def _one(self, user: User) -> None:
        try:
            while self._waiting:
                answer = await user.ask(self._waiting.popleft())
                record = answer.record()
                self._tally.add(record)
                self._clocks |= answer.clocks
                self._finished(answer, record)
                if self._think_s and self._waiting:
                    await asyncio.sleep(self._think_s)
        finally:
            user.leave()
