"""Every time stamp of a session's finished repeats and quality tasks, as CSV or as fixed-size records.

A row has the candidate, the step (`l0.p1.r2` is repeat 2 at point 1 of launch 0, `l0.p0.t-NAME` a quality task), the
request id as sent in `X-Request-Id`, `k`, `t_ns` and the clock. `k` is -1 for the moment the request was handed to the
kernel, 0 and up for its chunks of generated text. `t_ns` is on the monotonic clock of the session's host. The clock is
who stamped it: always `user` where k is -1, else `kernel`, `user` or `mixed` as it was for the reads of that request.
Rows stand request by request, in the order the requests of a load worker ended.

CSV, UTF-8: the columns `candidate,step,request_id,k,t_ns,clock` with a heading.

Binary, little-endian:

    8 bytes             DTROWS01
    u32                 offset of the first record from the start of the file
    u32                 number of steps
    for each step       the candidate, then the step; each a u32 with its length in bytes, then UTF-8
    zeros               up to the first record
    24 bytes a record   step u32 (its place in the table above), request id u32, k i32, clock u8 (0 user, 1 kernel,
                        2 mixed), 3 bytes of nothing, t_ns i64

NumPy reads the records with dtype `[("step", "<u4"), ("request_id", "<u4"), ("k", "<i4"), ("clock", "u1"),
("", "V3"), ("t_ns", "<i8")]`.
"""

import csv
import io
import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence

from deploytui.export.finished import Complain, FinishedStep, files_of
from deploytui.load.stamps import CLOCKS, BadStamps, RequestStamps, unpack_stamps
from deploytui.session.folder import SessionFolder

COLUMNS = ("candidate", "step", "request_id", "k", "t_ns", "clock")
MAGIC = b"DTROWS01"
RECORD = struct.Struct("<IIiB3xq")
SENT_K = -1
BLOCK = 1 << 20
"""Bytes that are gathered before they are written."""
ROWS_AT_ONCE = 1 << 14

Rows = Callable[[int, RequestStamps], Iterator[bytes]]
"""The place of the step and one of its requests to the bytes of its rows."""


def stamps_csv(folder: SessionFolder, steps: Sequence[FinishedStep], complain: Complain) -> Iterator[bytes]:
    """The rows of all steps as CSV, in blocks."""
    begins = [_fields(step.key.candidate, step.label) for step in steps]
    yield f"{_fields(*COLUMNS)}\n".encode()
    yield from _blocks(folder, steps, complain, lambda place, one: _csv_rows(begins[place], one))


def stamps_binary(folder: SessionFolder, steps: Sequence[FinishedStep], complain: Complain) -> Iterator[bytes]:
    """The rows of all steps as records behind a table of the steps, in blocks."""
    yield table(steps)
    yield from _blocks(folder, steps, complain, _records)


def table(steps: Sequence[FinishedStep]) -> bytes:
    """The head of the binary form: what the `step` of a record stands for."""
    names = b"".join(_text(name) for step in steps for name in (step.key.candidate, step.label))
    begin = len(MAGIC) + 8 + len(names)
    blanks = -begin % 8
    return MAGIC + struct.pack("<II", begin + blanks, len(steps)) + names + bytes(blanks)


def _blocks(folder: SessionFolder, steps: Sequence[FinishedStep], complain: Complain, rows: Rows) -> Iterator[bytes]:
    block = bytearray()
    for place, path in files_of(folder, steps, "stamps", complain):
        try:
            with path.open("rb", buffering=BLOCK) as file:
                for request in unpack_stamps(file):
                    for part in rows(place, request):
                        block += part
                        if len(block) >= BLOCK:
                            yield bytes(block)
                            block.clear()
        except (OSError, BadStamps) as error:
            complain(f"{path.relative_to(folder.path)}: can't be read to its end ({error}).")
    yield bytes(block)


def _csv_rows(begin: str, request: RequestStamps) -> Iterator[bytes]:
    yield f"{begin},{request.id},{SENT_K},{request.sent_ns},user\n".encode()
    head, tail = f"{begin},{request.id},", f",{request.clock}\n"
    for first, stamps in _parts(request.stamps):
        yield "".join([f"{head}{k},{t_ns}{tail}" for k, t_ns in enumerate(stamps, first)]).encode()


def _records(place: int, request: RequestStamps) -> Iterator[bytes]:
    """Three words of 64 bits a record, each filled for all records at once: what differs from row to row is copied."""
    yield RECORD.pack(place, request.id, SENT_K, CLOCKS.index("user"), request.sent_ns)
    whose, clock = place | request.id << 32, CLOCKS.index(request.clock) << 32
    for first, stamps in _parts(request.stamps):
        words = array("Q", bytes(RECORD.size * len(stamps)))
        words[0::3] = array("Q", [whose]) * len(stamps)
        words[1::3] = array("Q", range(clock + first, clock + first + len(stamps)))
        words[2::3] = array("Q", stamps.tobytes())
        if sys.byteorder == "big":
            words.byteswap()
        yield words.tobytes()


def _parts(stamps: "array[int]") -> Iterator[tuple[int, "array[int]"]]:
    """The stamps in pieces of bounded length, each with the place of its first."""
    for first in range(0, len(stamps), ROWS_AT_ONCE):
        yield first, stamps[first : first + ROWS_AT_ONCE]


def _fields(*texts: str) -> str:
    """Fields of a CSV row, quoted where they need it; a broken character is `?`."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\r\n").writerow(text.encode("utf-8", "replace").decode() for text in texts)
    return row.getvalue().removesuffix("\r\n")


def _text(text: str) -> bytes:
    content = text.encode("utf-8", "replace")
    return struct.pack("<I", len(content)) + content
