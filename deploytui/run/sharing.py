"""How many workers a load gets, and the share of each."""

import os
from bisect import bisect_left
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from deploytui.load.orders import LoadOrder

STREAMS_A_WORKER = 64
"""A worker with fewer streams, or requests per second, only takes a core away from the engine."""
OPENED_AT_MOST = 1000
"""Connections that an open loop has beforehand; more are opened as they are needed."""


class _Timed(Struct):
    at_s: float | None = None


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(asked: int | None, streams: int) -> int:
    """Load workers for so many streams, or requests per second: as asked, else what those need and the cores allow."""
    if asked is not None:
        return max(1, min(asked, streams))
    return max(1, min(usable_cores() - 1, ceil(streams / STREAMS_A_WORKER)))


def busiest_second(prompts: Path) -> int:
    """The most requests of an open loop's prompts file that leave within one second."""
    decode = msgspec.json.Decoder(_Timed).decode
    with prompts.open("rb") as file:
        times = sorted(at_s for line in file if not line.isspace() and (at_s := decode(line).at_s) is not None)
    return max((bisect_left(times, at_s + 1.0) - place for place, at_s in enumerate(times)), default=1)


def shared(whole: LoadOrder, workers: int) -> tuple[LoadOrder, ...]:
    """The order of all as one for each worker: lines, users and files of its own."""
    workers = min(workers, whole.concurrency)
    users = _split(whole.concurrency, workers)
    return tuple(
        replace(
            whole,
            shard=shard,
            shards=workers,
            concurrency=users[shard],
            records=whole.records.replace(".w0.", f".w{shard}."),
            stamps=whole.stamps.replace(".w0.", f".w{shard}."),
        )
        for shard in range(workers)
    )


def _split(count: int, parts: int) -> Sequence[int]:
    """As even as can be, the larger parts first."""
    return [count // parts + (part < count % parts) for part in range(parts)]
