"""Bytes of a response, cut into reads, folded into a record."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from deploytui.load.answer import Answer
from deploytui.record.trace import RequestRecord

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
STREAMS = sorted(path for path in CAPTURES.glob("*/*_stream.raw"))
REFUSALS = sorted(path for path in CAPTURES.glob("*/err_*.raw"))

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
"""A stream that ends with its connection."""


def named(path: Path) -> str:
    """A capture's name for a test's id."""
    return f"{path.parent.name}/{path.stem}"


def fold(reads: Iterable[tuple[int, bytes]], *, eof_ns: int | None = None) -> Answer:
    """The answer that reads at their stamps [ns] make; the connection then closes at `eof_ns`."""
    answer, at_ns = Answer(id=7, user=0, sent_ns=0, keep_text=True), 0
    for at_ns, data in reads:
        answer.read(data, at_ns)
    answer.eof(at_ns if eof_ns is None else eof_ns)
    return answer


def record_of(*reads: bytes) -> RequestRecord:
    """The record of reads that all came at once."""
    return fold((1, data) for data in reads).record()


def told(record: RequestRecord) -> RequestRecord:
    """The record without what the packing into reads may change."""
    return msgspec.structs.replace(record, reads=0, multi_chunk_reads=0)


def cut(content: bytes, places: Sequence[int]) -> list[bytes]:
    """The content cut at the given places."""
    edges = [0, *sorted(set(places)), len(content)]
    return [content[a:b] for a, b in pairwise(edges) if a < b]


def event(*, data: object) -> bytes:
    """One event with JSON data."""
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def delta(finish_reason: str | None = None, /, **fields: object) -> dict[str, object]:
    """A chat chunk."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


DONE = b"data: [DONE]\n\n"
STOP = delta("stop")
