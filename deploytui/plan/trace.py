"""A recorded trace of requests, when each came and how long it was: JSONL as of Mooncake or Azure, or CSV. Pure."""

import csv
import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from deploytui.errors import ProfileError

MOONCAKE = ("timestamp", "input_length", "output_length")
"""Time in milliseconds since the trace began, lengths in tokens."""
AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
"""Time as ISO 8601 text, lengths in tokens."""
UNKNOWN = 0
MICRO = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EXAMPLE = '{"timestamp": 0, "input_length": 512, "output_length": 64}'


class Trace(Struct, frozen=True, kw_only=True):
    """The lines of a trace file, in order; the arrays have the shape (lines,)."""

    name: str
    sha256: str
    times_s: Sequence[float]
    """Since the first line [s], ascending."""
    prompt_tokens: Sequence[int]
    output_tokens: Sequence[int]
    """0 where the line has no lengths."""
    lengthless_line: int | None = None
    """The first line without lengths; None when all have them."""
    has_hashes: bool = False
    """Whether it tells which prompts began alike (`hash_ids`)."""


class _Row(NamedTuple):
    line: int
    time_us: int
    prompt_tokens: int
    output_tokens: int
    has_hashes: bool = False


def parse_trace(name: str, content: bytes) -> Trace:
    """The trace in the bytes of a file; ProfileError names the line that is wrong."""
    times, prompts, outputs = array("d"), array("q"), array("q")
    first = last = lengthless = None
    hashes = False
    for row in _rows(name, content):
        first = row.time_us if first is None else first
        if last is not None and row.time_us < last:
            earlier_s = (last - row.time_us) / MICRO
            what = f"{_place(name, row.line)}: its time is {earlier_s:g} s before that of the line before."
            raise ProfileError(what, fix="Sort the trace by time.")
        last = row.time_us
        lengthless = row.line if lengthless is None and row.prompt_tokens == UNKNOWN else lengthless
        hashes = hashes or row.has_hashes
        times.append((row.time_us - first) / MICRO)
        prompts.append(row.prompt_tokens)
        outputs.append(row.output_tokens)
    if not times:
        raise ProfileError(f"The trace {name!r} is empty.", fix=f"Give it a line a request: {EXAMPLE}.")
    return Trace(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        times_s=times,
        prompt_tokens=prompts,
        output_tokens=outputs,
        lengthless_line=lengthless,
        has_hashes=hashes,
    )


def _place(name: str, line: int) -> str:
    return f"The trace {name!r}, line {line}"


def _rows(name: str, content: bytes) -> Iterator[_Row]:
    """The requests of a trace; a file whose first sign is no brace is CSV with a line of names at its head."""
    text = content.removeprefix(b"\xef\xbb\xbf")
    numbered = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    if not numbered:
        return
    first = numbered[0][1].strip()
    is_csv = not any(sign in first for sign in b"{}") and any(key.encode() in first for key in (MOONCAKE[0], AZURE[0]))
    for number, cells in _csv(name, numbered) if is_csv else _jsonl(name, numbered):
        yield _row(_place(name, number), number, cells)


def _jsonl(name: str, numbered: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    decode = msgspec.json.Decoder().decode
    for number, line in numbered:
        try:
            cells = decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            what = f"{_place(name, number)} is not JSON."
            raise ProfileError(what, why=str(error), fix=f"A line is one object, such as {EXAMPLE}.") from error
        if not isinstance(cells, dict):
            raise ProfileError(f"{_place(name, number)} is no object.", fix=f"Write a line such as {EXAMPLE}.")
        yield number, cells


def _csv(name: str, numbered: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.reader(_text(_place(name, number), line) for number, line in numbered)
    try:
        head = [cell.strip() for cell in next(reader)]
        for (number, _), cells in zip(numbered[1:], reader, strict=False):
            if len(cells) != len(head):
                what = f"{_place(name, number)} has {len(cells)} cells, and the first line names {len(head)}."
                raise ProfileError(what, fix="Give every line a cell for each name.")
            yield number, {key: _number_or_text(cell.strip()) for key, cell in zip(head, cells, strict=True)}
    except csv.Error as error:
        raise ProfileError(f"The trace {name!r} is not CSV.", why=str(error), fix="Use JSONL instead.") from error


def _text(place: str, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ProfileError(f"{place} is not UTF-8.", why=str(error), fix="Save the trace as UTF-8.") from error


def _number_or_text(cell: str) -> int | float | str | None:
    """A cell as JSON would hold it; None for an empty one."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell or None


def _row(place: str, line: int, cells: Mapping[str, Any]) -> _Row:
    when, asked, answered = names = AZURE if AZURE[0] in cells else MOONCAKE
    time_us = _iso_us(place, cells[when]) if names is AZURE else _ms_as_us(place, cells.get(when))
    lengths = [cells.get(asked), cells.get(answered)]
    if lengths == [None, None]:
        return _Row(line, time_us, UNKNOWN, UNKNOWN)
    tokens = [_tokens(place, key, value) for key, value in zip((asked, answered), lengths, strict=True)]
    return _Row(line, time_us, tokens[0], tokens[1], "hash_ids" in cells)


def _ms_as_us(place: str, value: Any) -> int:
    """A time in milliseconds as whole microseconds."""
    if value is None:
        fix = f"Give it {MOONCAKE[0]} [ms] or {AZURE[0]}, such as {EXAMPLE}."
        raise ProfileError(f"{place} has no time.", fix=fix)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ProfileError(f"{place}: timestamp is {value!r}, not a number of milliseconds.", fix="Correct the line.")
    return round(value * 1000)


def _iso_us(place: str, value: Any) -> int:
    """A time as ISO 8601 text as microseconds since 1970; one without a zone is taken for UTC."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError as error:
        fix = "Write it such as 2024-05-10 00:00:00.009930+00:00."
        raise ProfileError(
            f"{place}: TIMESTAMP is {value!r}, which is no ISO time.", why=str(error), fix=fix
        ) from error
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def _tokens(place: str, key: str, value: Any) -> int:
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(whole, bool) or not isinstance(whole, int):
        said = "is missing" if value is None else f"is {value!r}, not a number of tokens"
        raise ProfileError(f"{place}: {key} {said}.", fix=f"Write a line such as {EXAMPLE}.")
    if whole < 1:
        fix = "Correct or remove the line: nobody can send a request of no tokens."
        raise ProfileError(f"{place}: {key} is {whole}, and a length is at least 1.", fix=fix)
    if whole >= 1 << 31:
        raise ProfileError(f"{place}: {key} is {whole}, longer than any context.", fix="Correct the line.")
    return whole
