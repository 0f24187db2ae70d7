"""What closed and open loops share: requests under way, what came of them, and what ends a load early."""

import asyncio
import time
from array import array
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from deploytui.load.answer import Answer
from deploytui.load.exchange import User
from deploytui.load.loop import catch_up
from deploytui.load.orders import LoadOrder, Snapshot, Stopped
from deploytui.load.render import Request
from deploytui.load.tally import Tally
from deploytui.record.trace import CUT_OFF, RequestRecord

LATE_NS = 1_000_000
"""A request of an open loop sent more than this after its time is late [ns]."""
TOO_MANY = 429
JUDGED_FROM = 20
"""Finished requests before their share of failures can end a load."""

_ENDINGS = {
    "time": "the load's time was over while it was under way",
    "errors": "too many requests had failed while it was under way",
}


@dataclass(slots=True, eq=False)
class Asking:
    """A request that a user is at."""

    user: User
    request: Request
    scheduled_ns: int | None = None
    refused: Answer | None = None
    """The newest answer 429, while it waits to be asked again."""
    task: "asyncio.Task[Any] | None" = field(default_factory=asyncio.current_task)


class Course:
    """The course of one load; `keep` gets each finished request with its chunk stamps."""

    def __init__(self, order: LoadOrder, total: int, keep: Callable[[RequestRecord, "array[int]"], None]) -> None:
        self.tally = Tally(total=total)
        self.clocks: set[str] = set()
        self.refused = self.late_sends = self.reconnects = self.dropped = 0
        self._latest_send_ns: int | None = None
        self._order = order
        self._keep = keep
        self._asking: set[Asking] = set()
        self.ended: asyncio.Future[Stopped] = asyncio.get_running_loop().create_future()
        """Set once the load ends early."""

    def end(self, why: Stopped) -> None:
        """Send nothing more; the first reason counts."""
        if not self.over:
            self.ended.set_result(why)

    @property
    def over(self) -> bool:
        """Whether the load ended early: nothing more is to be sent."""
        return self.ended.done()

    def begin(self, user: User, request: Request, scheduled_ns: int | None = None) -> Asking:
        """The user turns to the request, which should leave at that time."""
        asking = Asking(user, request, scheduled_ns)
        self._asking.add(asking)
        return asking

    def finish(self, asking: Asking, answer: Answer) -> None:
        """What came of it."""
        self._asking.discard(asking)
        self.refused += answer.status == TOO_MANY
        self._take(self._record(asking, answer), answer)
        worst, tally = self._order.max_error_rate, self.tally
        if worst is not None and tally.done >= JUDGED_FROM and tally.failed > worst * tally.done:
            self.end("errors")

    async def run(self, work: Coroutine[Any, Any, None]) -> Stopped | None:
        """Do the work until it is done or the load ends early; why it ended, None when all was answered."""
        if self.over:
            work.close()
            return self.ended.result()
        loop, max_s = asyncio.get_running_loop(), self._order.max_s
        timer = None if max_s is None else loop.call_later(max_s, self.end, "time")
        task = loop.create_task(work)
        waited: set[asyncio.Future[Any]] = {task, self.ended}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if timer is not None:
            timer.cancel()
        if task.done():
            task.result()
            return None
        why = self.ended.result()
        catch_up()
        self._cut(why)
        for asking in self._asking:  # at once: what is connecting now shall not send any more
            if asking.task is not None:
                asking.task.cancel()
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()
        return why

    @property
    def latest_send_ms(self) -> float | None:
        """How late the latest request was sent [ms]; None in a closed loop, which has no schedule."""
        return None if self._latest_send_ns is None else self._latest_send_ns / 1e6

    @property
    def not_sent(self) -> int:
        """Requests that were never sent, once the course is run."""
        return self.tally.total - self.tally.done - self.dropped

    def snapshot(self) -> Snapshot:
        """Where the load is."""
        under_way = [answer for asking in self._asking if (answer := asking.user.under_way) is not None]
        return self.tally.snapshot(time.monotonic_ns(), under_way)

    def _record(self, asking: Asking, answer: Answer) -> RequestRecord:
        answer.scheduled_ns, answer.conversation = asking.scheduled_ns, asking.request.conversation
        answer.retried = asking.refused is not None and asking.refused is not answer
        worker, asked_tokens = self._order.shard, asking.request.asked_tokens
        record = answer.record()
        return replace(record, worker=worker, asked_tokens=asked_tokens) if worker or asked_tokens else record

    def _take(self, record: RequestRecord, answer: Answer) -> None:
        self.tally.add(record)
        self.clocks |= answer.clocks
        self.reconnects += answer.reconnected
        if record.scheduled_ns is not None:
            late_ns = record.sent_ns - record.scheduled_ns
            self.late_sends += late_ns > LATE_NS
            self._latest_send_ns = max(self._latest_send_ns or 0, late_ns)
        self._keep(record, answer.stamps)

    def _cut(self, why: Stopped) -> None:
        """Record what is under way; when somebody wished the end, only what happened to be over."""
        now_ns = time.monotonic_ns()
        for asking in self._asking:
            answer = asking.user.under_way or asking.refused
            if answer is None or not answer.sent_ns:
                continue
            record = self._record(asking, answer)
            if answer.over or answer.done_ns is not None:
                self._take(record, answer)
            elif why != "cancelled":
                cut = {"ok": False, "error_kind": CUT_OFF, "error": _ENDINGS[why], "end_ns": now_ns}
                self._take(replace(record, **cut), answer)
            else:
                self.dropped += 1
