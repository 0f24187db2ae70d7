"""Every request of a session's finished repeats and quality tasks as JSONL, read and written block by block."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from deploytui.export.finished import Complain, FinishedStep, files_of
from deploytui.export.plain import harmless
from deploytui.record.trace import RequestRecord
from deploytui.session.folder import SessionFolder

BLOCK = 1 << 20


class RequestRow(RequestRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A request with all its fields, null where there is nothing."""


_decode = msgspec.json.Decoder(RequestRow).decode
_encode = msgspec.json.Encoder().encode


def requests_jsonl(folder: SessionFolder, steps: Sequence[FinishedStep], complain: Complain) -> Iterator[bytes]:
    """A line a request: candidate, step and its parts, whether it is simulated, then the fields of `RequestRecord`."""
    begins = [_encode(_about(step))[:-1] + b"," for step in steps]
    for place, path in files_of(folder, steps, "requests", complain):
        name, broken, begin = path.relative_to(folder.path), 0, begins[place]
        try:
            for lines in _lines(path):
                rows = [_row(begin, line) for line in lines if line]
                broken += rows.count(b"")
                yield harmless(b"".join(rows))
        except OSError as error:
            complain(f"{name}: can't be read to its end ({error}).")
        if broken:
            complain(f"{name}: {broken} of its lines are no request and are left out.")


def _about(step: FinishedStep) -> dict[str, str | int | bool | None]:
    key = step.key
    return {
        "candidate": key.candidate,
        "step": step.label,
        "launch": key.launch,
        "point": key.point,
        "repeat": key.repeat,
        "task": key.task,
        "simulated": step.simulated,
    }


def _row(begin: bytes, line: bytes) -> bytes:
    """The line with every field, in front of them whose it is; empty when it is no request."""
    try:
        return begin + _encode(_decode(line))[1:] + b"\n"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return b""


def _lines(path: Path) -> Iterator[list[bytes]]:
    """The whole lines of a file, a block of them at a time, and at its end what lacks a newline."""
    rest = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            yield lines
    yield [rest]
