"""Repeats on disk, as load workers leave them behind."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from deploytui.load.orders import LoadOrder, Report
from deploytui.load.stamps import MAGIC, pack_stamps
from deploytui.record.trace import RequestRecord

MS = 1_000_000

Entry = tuple[RequestRecord, Sequence[int]]
"""A request and the stamps of its chunks [ns]."""


def an_order(folder: Path, worker: int = 0) -> LoadOrder:
    return LoadOrder(
        base_url="http://127.0.0.1:1",
        endpoint="chat",
        model="m",
        output_tokens=4,
        prompts="",
        concurrency=1,
        records=str(folder / f"requests.w{worker}.jsonl"),
        stamps=str(folder / f"stamps.w{worker}.bin"),
    )


def a_report(**changes: Any) -> Report:
    plain: dict[str, Any] = {
        "kind": "report",
        "at_ns": 0,
        "requests": 1,
        "ok": 1,
        "started_ns": 0,
        "ended_ns": 1,
        "clock": "user",
        "lag_ms_p99": 0.5,
        "lag_ms_max": 1.0,
        "cpu_share": 0.2,
    }
    return msgspec.convert(plain | changes, Report)


def write_repeat(folder: Path, workers: Sequence[Sequence[Entry]]) -> list[tuple[LoadOrder, Report]]:
    """The files of one repeat, with the entries of each worker."""
    loads = []
    for worker, entries in enumerate(workers):
        order = an_order(folder, worker)
        lines = [msgspec.json.encode(record) + b"\n" for record, _ in entries]
        Path(order.records).write_bytes(b"".join(lines))
        packed = [pack_stamps(record.id, record.clock, record.sent_ns, array("q", own)) for record, own in entries]
        Path(order.stamps).write_bytes(MAGIC + b"".join(packed))
        loads.append((order, a_report()))
    return loads
