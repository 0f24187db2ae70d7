"""The telemetry process: an order and changes on standard input, samples on standard output; ends when input closes.

It is a process of its own so that a driver that blocks for half a minute can't move a stamp of a load worker.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO

import msgspec
import psutil

from deploytui.load.lines_out import LineOut
from deploytui.telemetry.messages import DeviceReading, Sample, TelemetryOrder, order_decoder, watch_decoder
from deploytui.telemetry.nvml import Gpus
from deploytui.telemetry.tree import parents, sum_resident, tree

TREE_EVERY_S = 1.0
"""How old the list of a tree's processes may be; their memory is read for every sample [s]."""
FASTEST_S = 0.02


class GpuAsker:
    """Asks the driver in a thread of its own: while it blocks, the host's figures still come."""

    def __init__(self, open_gpus: Callable[[], Gpus] = Gpus.open) -> None:
        self._open = open_gpus
        self._gpus: Gpus | None = None
        self._thread = ThreadPoolExecutor(1)
        self._pending: Future[tuple[DeviceReading, ...]] | None = None
        self._since = 0.0

    def read(self, patience_s: float) -> tuple[tuple[DeviceReading, ...], str | None]:
        """The devices and, when there are none, why."""
        if self._pending is None:
            self._pending, self._since = self._thread.submit(self._ask), time.monotonic()
        try:
            devices = self._pending.result(timeout=patience_s)
        except TimeoutError:
            return (), f"The NVIDIA driver has not answered for {time.monotonic() - self._since:.1f} s."
        self._pending = None
        return devices, self._gpus.missing if self._gpus else None

    def _ask(self) -> tuple[DeviceReading, ...]:
        if self._gpus is None:
            self._gpus = self._open()
        return self._gpus.read()


class Sampler:
    """Makes samples; `pids` may be changed by another thread at any time."""

    def __init__(self, order: TelemetryOrder, gpus: GpuAsker) -> None:
        self.pids = tuple(dict.fromkeys(order.pids))
        self.interval_s = max(order.interval_s, FASTEST_S)
        self._gpus = gpus
        self._trees: dict[int, tuple[int, ...]] = {}
        self._trees_at = float("-inf")
        self._first = True

    def sample(self) -> Sample:
        """The node now."""
        at_ns = time.monotonic_ns()
        rss = self._rss()
        memory, cpu = psutil.virtual_memory(), psutil.cpu_percent()
        devices, missing = self._gpus.read(self.interval_s)
        first, self._first = self._first, False
        return Sample(
            at_ns=at_ns,
            devices=devices,
            gpu_missing=missing,
            host_used_bytes=memory.total - memory.available,
            host_total_bytes=memory.total,
            cpu_percent=None if first else cpu,
            rss=rss,
        )

    def _rss(self) -> dict[int, int | None]:
        pids, now = self.pids, time.monotonic()
        if pids != tuple(self._trees) or now - self._trees_at >= TREE_EVERY_S:
            known = parents() if pids else {}
            self._trees, self._trees_at = {pid: tree(pid, known) for pid in pids}, now
        return {pid: sum_resident(members) for pid, members in self._trees.items()}


def listen(source: BinaryIO, sampler: Sampler) -> None:
    """Take changes until the input closes; a line that is none is told on standard error and passed over."""
    for line in source:
        try:
            sampler.pids = tuple(dict.fromkeys(watch_decoder.decode(line).pids))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            print(f"not understood: {error}", file=sys.stderr, flush=True)  # noqa: T201


def run(sampler: Sampler, out: LineOut) -> None:
    """Sample at a fixed pace until nobody reads; a late sample shifts the pace, it is never made up for."""
    encoder, due = msgspec.json.Encoder(), time.monotonic()
    while not out.gone:
        out.offer(encoder.encode(sampler.sample()) + b"\n")
        due = max(due + sampler.interval_s, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


def main() -> None:
    """Read the order, then sample; ends without clean-up, since a thread may hang in the driver."""
    out = LineOut.claim()
    try:
        order = order_decoder.decode(sys.stdin.buffer.readline())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        sys.exit(f"no order on standard input: {error}")
    sampler = Sampler(order, GpuAsker())
    threading.Thread(target=_end_with_input, args=(sampler,), daemon=True).start()
    run(sampler, out)
    os._exit(0)


def _end_with_input(sampler: Sampler) -> None:
    try:
        listen(sys.stdin.buffer, sampler)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
