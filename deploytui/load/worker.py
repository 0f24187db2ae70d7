"""A load worker: `python -m deploytui.load.worker` reads one order, sends the load, reports.

Standard input carries the order (a line of JSON), then `{"do": "start", "at_ns": N}` where the order waits for it, and
`{"do": "stop"}` or nothing; when it closes the load ends. Standard output carries the word that all is ready, snapshots
and one report, or the trouble that prevented it. Exit status 1 with trouble.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from deploytui.load.client import Target, resolve
from deploytui.load.closed import closed_loop
from deploytui.load.course import Course
from deploytui.load.effort import Effort, peak_rss_bytes
from deploytui.load.exchange import User
from deploytui.load.kernel_clock import stamping
from deploytui.load.lines_out import LineOut
from deploytui.load.loop import longest_backlog_ms, new_loop
from deploytui.load.means import Means, means_of
from deploytui.load.meter import Meter
from deploytui.load.open import OpenLoop, Pool, scheduled
from deploytui.load.orders import LoadOrder, Ready, Report, Stopped, Trouble
from deploytui.load.pipes import Inbox, Outbox
from deploytui.load.render import Talk, render
from deploytui.load.sidecars import Sidecars
from deploytui.load.start import allow_files, moment, open_connections
from deploytui.load.trouble import LoadError
from deploytui.load.watch import Watch
from deploytui.load.wire import clock_of

YOUNG_OBJECTS = 500_000
"""Objects between two collections while the load runs: nearly all go by their counts, and each collection costs time
in which reads wait. More than a full backlog holds, which would set one off otherwise."""


def main() -> int:
    """Carry out the order on standard input; the exit status."""
    outbox, inbox = Outbox(LineOut.claim()), Inbox(0)
    try:
        order = inbox.order()
        if order is None:
            return 0
        with stamping(), asyncio.Runner(loop_factory=new_loop) as runner:  # stamps begin late: ask before the set-up
            report = runner.run(carry_out(order, inbox, outbox))
    except LoadError as error:
        outbox.insist(Trouble(what=error.what, why=error.why, fix=error.fix), inbox)
        return 1
    outbox.insist(report, inbox)
    return 0


async def carry_out(order: LoadOrder, inbox: Inbox, outbox: Outbox) -> Report:
    """Set up, load, sync the files; raises LoadError."""
    target = resolve(order.base_url)
    talks = _talks(order, target)
    count = min(order.concurrency, len(talks))
    allow_files(order, count)
    loop = asyncio.get_running_loop()
    sidecars = Sidecars(order, lambda: _in(loop, lambda: course.end("cancelled")))
    means = means_of(order, target)
    users = [means.user(number) for number in range(count)]
    course = Course(order, sum(map(len, talks)), sidecars.put)
    with Watch(inbox, outbox, course.end) as watch:
        connected = await open_connections(users, course.ended)
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS)
        ready = Ready(at_ns=time.monotonic_ns(), connected=connected)
        if order.wait_for_start:
            outbox.insist(ready, inbox)
        else:
            outbox.offer(ready)
        try:
            report = await _load(order, means, talks, users, course, watch)
        finally:
            await means.close()
            written = sidecars.close()
        outbox.offer(course.snapshot())
    return replace(
        report,
        records_sha256=written.records.sha256,
        records_bytes=written.records.bytes,
        stamps_sha256=written.stamps.sha256,
        stamps_bytes=written.stamps.bytes,
        cpu_s=time.process_time(),
        peak_rss_bytes=peak_rss_bytes(),
    )


def _talks(order: LoadOrder, target: Target) -> list[Talk]:
    if order.concurrency < 1:
        raise LoadError(f"A load of {order.concurrency} users sends nothing.", fix="Set concurrency to 1 or more.")
    talks = render(order, target)
    if not talks:
        raise LoadError(
            f"The prompts {order.prompts} hold nothing for worker {order.shard} of {order.shards}.",
            fix="Use fewer load_workers.",
        )
    return scheduled(talks) if order.loop == "open" else talks


async def _load(
    order: LoadOrder, means: Means, talks: list[Talk], users: list[User], course: Course, watch: Watch
) -> Report:
    """The load from its start to its end."""
    started_ns = await _begun(order, course, watch)
    effort = Effort()
    watch.tell(course.snapshot)
    if order.loop == "open":
        why = await course.run(OpenLoop(course, Pool(means.user, users), talks, started_ns).run())
    else:
        why = await course.run(closed_loop(course, order, users, talks))
    for user in users:
        user.leave()
    return _report(means, course, effort, started_ns, why)


async def _begun(order: LoadOrder, course: Course, watch: Watch) -> int:
    """When the load began, now that it has [ns]."""
    if order.wait_for_start:
        waited: set[asyncio.Future[Any]] = {watch.start, course.ended}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if watch.start.done():
            return await moment(watch.start.result(), course.ended)
    return time.monotonic_ns()


def _report(means: Means, course: Course, effort: Effort, started_ns: int, why: Stopped | None) -> Report:
    now_ns, meter, tally = time.monotonic_ns(), means.meter, course.tally
    return Report(
        at_ns=now_ns,
        requests=tally.done,
        ok=tally.ok,
        started_ns=started_ns,
        ended_ns=now_ns,
        clock=clock_of(course.clocks),
        path=means.path,
        lag_ms_p50=meter.percentile_ms(50),
        lag_ms_p99=meter.percentile_ms(99),
        lag_ms_max=_longest_lag_ms(meter),
        cpu_share=effort.cpu_share(),
        reads=tally.reads,
        multi_chunk_reads=tally.multi_chunk_reads,
        extra_multi_chunk_reads=meter.extra_merged,
        late_sends=course.late_sends,
        late_send_ms_max=course.latest_send_ms,
        refused=course.refused,
        reconnects=course.reconnects,
        stopped=why,
        not_sent=course.not_sent,
        cancelled=why == "cancelled",
        clock_jumps=means.clock.jumps,
    )


def _longest_lag_ms(meter: Meter) -> float | None:
    """Until a read was looked at; the other figures are until it was made, which is what a stamp of ours tells."""
    longest = meter.max_ms
    return None if longest is None else max(longest, longest_backlog_ms(asyncio.get_running_loop()))


def _in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have it called in the loop's own thread."""
    loop.call_soon_threadsafe(call)


if __name__ == "__main__":
    sys.exit(main())
