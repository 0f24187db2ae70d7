"""Why an engine failed, from any log a user has at hand."""

import gzip
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO
from zlib import error as zlib_error

import msgspec
from msgspec import Struct

from deploytui.check.text import failure_details, plain
from deploytui.engine.cause import plain as without_colours
from deploytui.engine.failures import last_words
from deploytui.engine.registry import load_engine
from deploytui.errors import UsageError
from deploytui.record.facts import Failure

GZIP = b"\x1f\x8b"
NOTHING = b"\0"
LONGEST = 1 << 20
"""A line longer than this is looked at in parts of so many bytes."""
IN_MEMORY = 16 << 20
"""How much of standard input is kept in memory [bytes]; what is more lies in a temporary file."""
LAST = 5
"""Lines told of a log that is not understood."""


class Explanation(Struct, frozen=True, kw_only=True):
    """Why an engine failed, as its log tells; `kind` None: not understood, and `why` is the log's end."""

    kind: str | None
    what: str
    why: str
    fix: str
    line: int | None
    """Where the decisive line stands; the first is 1."""


def explain_command(engine: str, path: Path, *, as_json: bool) -> tuple[str, int]:
    """What `deploytui explain` prints, and its exit status: 0 understood, 1 not; raises UsageError, ProfileError.

    A path of `-` is standard input; a log may be compressed with gzip.
    """
    explainer = load_engine(engine)
    try:
        with _opened(path) as log:
            found = _explained(explainer.explain(_texts(log)), log)
    except (OSError, EOFError, zlib_error) as error:
        raise UsageError(f"The log {path} can't be read.", why=str(error), fix="Give the path of a log.") from error
    if as_json:
        return msgspec.json.encode(found).decode() + "\n", int(found.kind is None)
    return _text(found, explainer.title), int(found.kind is None)


def _explained(failure: Failure | None, log: IO[bytes]) -> Explanation:
    log.seek(0)
    if failure is None:
        return Explanation(
            kind=None,
            what="No rule knows a line of this log.",
            why=last_words(deque(_texts(log), maxlen=10 * LAST), LAST),
            fix="Look at its last lines, and for the first error above them.",
            line=None,
        )
    return Explanation(
        kind=failure.kind, what=failure.what, why=failure.why, fix=failure.fix, line=_place(failure.why, log)
    )


def _place(why: str, log: IO[bytes]) -> int | None:
    """The number of the first line that holds the decisive words."""
    words = why.strip("…")
    return next((number for number, text in _lines(log) if words in without_colours(text)), None) if words else None


def _text(found: Explanation, title: str) -> str:
    where = "" if found.line is None else f" (line {found.line})"
    head = "not understood" if found.kind is None else found.kind
    failure = Failure(kind="unknown", what=found.what, why=found.why, fix=found.fix)
    lines = (f"{title}: {head}{where}", f"  {found.what}", *(f"  {line}" for line in failure_details(failure)))
    return "".join(f"{plain(line)}\n" for line in lines)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The log, decompressed, to be read more than once."""
    with _kept(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as raw:
        packed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.open(raw) as unpacked:
            yield unpacked  # type: ignore[misc]  # all that is used of a file is there


def _kept(stream: BinaryIO) -> IO[bytes]:
    """What a pipe brings, kept so that it can be read again."""
    kept = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by whoever reads it
    while block := stream.read(LONGEST):
        kept.write(block)
    kept.seek(0)
    return kept


def _texts(log: IO[bytes]) -> Iterator[str]:
    return (text for _, text in _lines(log))


def _lines(log: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Each line with its number; one that is very long comes in parts.

    What has a zero byte in it is no line: a program's own texts are not what it said. Zeros at its beginning are
    those of a log that was cut while it was written.
    """
    number, ended = 0, True
    while part := log.readline(LONGEST):
        number += ended
        ended = part.endswith(b"\n")
        if NOTHING not in (text := part.lstrip(NOTHING)):
            yield number, text.decode(errors="replace").rstrip("\r\n")
