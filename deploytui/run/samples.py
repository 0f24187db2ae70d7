"""From a repeat's files to the sample its metrics are computed from: read block by block, never held as a whole."""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from deploytui.load.orders import LoadOrder, Report
from deploytui.record.columns import RequestColumns
from deploytui.record.metrics import RepeatSample
from deploytui.record.trace import RequestRecord
from deploytui.run.client_bound import tool_error

BLOCK = 1 << 20
"""How much of a records file is decoded at once [bytes]."""

_decoder = msgspec.json.Decoder(RequestRecord)


def record_blocks(path: Path) -> Iterator[list[RequestRecord]]:
    """The requests of a records file in its order, some at a time; an unfinished last line is left out."""
    left = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            whole, newline, rest = block.rpartition(b"\n")
            if newline:
                yield _decoder.decode_lines(left + whole)
                left = rest
            else:
                left += block


def read_records(path: Path) -> list[RequestRecord]:
    """All requests of a small records file; an unfinished last line is left out."""
    return [record for block in record_blocks(path) for record in block]


def repeat_sample(loads: Sequence[tuple[LoadOrder, Report]]) -> RepeatSample:
    """What a finished repeat showed, from the files and reports of all its workers."""
    from deploytui.run.gaps import StampGaps, StampsFile  # NumPy takes 0.1 s, which no request shall wait for

    requests = RequestColumns()
    files = [StampsFile(Path(order.stamps), _add_records(Path(order.records), requests)) for order, _ in loads]
    gaps = StampGaps(files)
    return RepeatSample(requests, gaps, tool_error([report for _, report in loads], requests, gaps))


def _add_records(path: Path, requests: RequestColumns) -> "array[int]":
    """Take in the requests of one file; the ids of its successful ones."""
    ok_ids = array("I")
    for block in record_blocks(path):
        requests.add(block)
        ok_ids.extend([record.id for record in block if record.ok])
    return ok_ids


def first_error(samples: Sequence[RepeatSample]) -> str:
    """What the first failed request was answered; empty when none failed."""
    return next((sample.requests.first_error for sample in samples if sample.requests.first_error), "")
