"""A load worker: `python -m deploytui.load.worker` reads one order, sends the load, reports.

Standard input carries the order (a line of JSON), then `{"do": "stop"}` or nothing; when it closes the load ends.
Standard output carries snapshots and one report, or the trouble that prevented it. Exit status 1 with trouble.
"""

import asyncio
import functools
import gc
import resource
import signal
import sys
from collections.abc import Callable

from deploytui.load.client import connect, resolve
from deploytui.load.closed import SNAPSHOT_S, ClosedLoad
from deploytui.load.exchange import User
from deploytui.load.kernel_clock import KernelClock, stamping
from deploytui.load.orders import LoadOrder, Report, Trouble
from deploytui.load.pipes import Inbox, Outbox, claim_stdout
from deploytui.load.render import Request, read_prompts, render
from deploytui.load.sidecars import Sidecars
from deploytui.load.trouble import LoadError

SPARE_FILES = 64
"""Descriptors the worker needs beside its connections."""

_ENDING = (signal.SIGTERM, signal.SIGINT)


def main() -> int:
    """Carry out the order on standard input; the exit status."""
    outbox, inbox = Outbox(claim_stdout()), Inbox(0)
    try:
        order = inbox.order()
        if order is None:
            return 0
        with stamping():  # from before the set-up, so that the first answer finds it going
            report = asyncio.run(carry_out(order, inbox, outbox))
    except LoadError as error:
        outbox.insist(Trouble(what=error.what, why=error.why, fix=error.fix), inbox)
        return 1
    outbox.insist(report, inbox)
    return 0


async def carry_out(order: LoadOrder, inbox: Inbox, outbox: Outbox) -> Report:
    """Set up, load, sync the files; raises LoadError."""
    clock = KernelClock()
    requests, users = _prepared(order, clock)
    halt: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    stop = functools.partial(_stop, halt)
    sidecars = Sidecars(order.records, order.stamps, _from_thread(stop))
    load = ClosedLoad(order, requests, users, lambda answer, record: sidecars.put(record, answer.stamps))
    gc.collect()
    gc.freeze()
    with _Watch(inbox, outbox, load, stop):
        report = await load.run(halt, clock)
        outbox.offer(load.snapshot())
    sidecars.close()
    return report


def _prepared(order: LoadOrder, clock: KernelClock) -> tuple[list[Request], list[User]]:
    if order.trust_proxy_env:
        raise LoadError(
            "A load can't be sent through a proxy: it would measure the proxy.",
            fix="Give a base_url that is reached directly, and leave trust_proxy_env off.",
        )
    if order.concurrency < 1:
        raise LoadError(f"A load of {order.concurrency} users sends nothing.", fix="Set concurrency to 1 or more.")
    target = resolve(order.base_url)
    requests = render(order, target, read_prompts(order.prompts))
    count = min(order.concurrency, len(requests))
    _allow_files(count + SPARE_FILES)
    dial = functools.partial(connect, target, clock)
    users = [User(k, dial, timeout_s=order.request_timeout_s, keep_text=order.keep_text) for k in range(count)]
    return requests, users


def _allow_files(needed: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise LoadError(
                f"The load needs {needed} open files, this user may have {hard}.",
                fix="Lower concurrency, or raise the limit (ulimit -n).",
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _stop(halt: asyncio.Future[None]) -> None:
    if not halt.done():
        halt.set_result(None)


def _from_thread(call: Callable[[], None]) -> Callable[[], None]:
    loop = asyncio.get_running_loop()

    def hand_over() -> None:
        loop.call_soon_threadsafe(call)

    return hand_over


class _Watch:
    """While the load runs: words on the leash, snapshots at a fixed rate, signals."""

    def __init__(self, inbox: Inbox, outbox: Outbox, load: ClosedLoad, stop: Callable[[], None]) -> None:
        self._inbox, self._outbox, self._load, self._stop = inbox, outbox, load, stop
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        for sign in _ENDING:
            self._loop.add_signal_handler(sign, self._stop)
        self._listen()
        self._tell()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for sign in _ENDING:
            self._loop.remove_signal_handler(sign)
        self._loop.remove_reader(self._inbox.fd)

    def _listen(self) -> None:
        try:
            self._loop.add_reader(self._inbox.fd, self._heard)
        except PermissionError:  # a plain file: there is no other side that could hold the leash
            self._stop()
        if self._inbox.told_to_stop():
            self._stop()

    def _heard(self) -> None:
        self._inbox.take()
        if self._inbox.told_to_stop():
            self._stop()
        if self._inbox.closed:
            self._loop.remove_reader(self._inbox.fd)

    def _tell(self) -> None:
        self._outbox.offer(self._load.snapshot())
        if self._outbox.gone:
            self._stop()
        self._timer = self._loop.call_later(SNAPSHOT_S, self._tell)


if __name__ == "__main__":
    sys.exit(main())
