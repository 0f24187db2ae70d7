"""What the paced server wrote about itself, and how far a load's stamps are from it. Pure but for reading the file.

The layout of the file is told at the top of `host/paced_truth.py`.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import sub
from typing import BinaryIO, NamedTuple

from deploytui.definitions import percentile, samples_needed
from deploytui.errors import DeployError
from deploytui.load.stamps import RequestStamps

MAGIC = b"DTTRUTH1"
_SCHEDULE, _ENTRY = struct.Struct("<q"), struct.Struct("<IIB7xqq")
_FINISHED, _BLOCKED, _KERNEL = 1, 2, 4


class Sent(NamedTuple):
    """One request as the server knows it; times are `time.monotonic_ns()` of the host."""

    id: int
    finished: bool
    blocked: bool
    """The client read so slowly that tokens waited in the server: their stamps tell nothing."""
    seen_ns: int
    """When the request came in."""
    seen_by_kernel: bool
    due_ns: int
    """When its first token was due."""
    stamps: "array[int]"
    """When each token was handed to the kernel [ns], shape (tokens,)."""


class Joined(NamedTuple):
    """The distance between what a client stamped and what the server did."""

    requests: int
    """Those that both sides know from beginning to end."""
    tokens: int
    left_out: int
    """Those that only one side knows, or that were cut or blocked."""
    ttft_error_us: list[float]
    """|client's TTFT - server's TTFT| of each request, ascending, shape (requests,)."""
    itl_error_us: list[float]
    """|client's gap - server's gap| of each two tokens of a stream, ascending, shape (tokens - requests,)."""
    pace: float | None
    """Tokens a second as the server sent them in its streams, against the schedule; None without two tokens."""
    server_off_us: list[float]
    """|server's gap - schedule's ITL|, ascending, shape (tokens - requests,): the server's unevenness."""


def read_truth(file: BinaryIO) -> tuple[int, Iterator[Sent]]:
    """The schedule's ITL [ns] and each request in the order of their ends, read on demand; DeployError for others."""
    head = file.read(len(MAGIC) + _SCHEDULE.size)
    if not head.startswith(MAGIC) or len(head) < len(MAGIC) + _SCHEDULE.size:
        raise DeployError("The paced server's truth file does not begin with its mark.")
    return int(_SCHEDULE.unpack(head[len(MAGIC) :])[0]), _entries(file)


def _entries(file: BinaryIO) -> Iterator[Sent]:
    while len(header := file.read(_ENTRY.size)) == _ENTRY.size:
        id_, count, flags, seen_ns, due_ns = _ENTRY.unpack(header)
        content = file.read(8 * count)
        if len(content) < 8 * count:
            return
        stamps = array("q", struct.unpack(f"<{count}q", content))
        finished, blocked, kernel = (bool(flags & bit) for bit in (_FINISHED, _BLOCKED, _KERNEL))
        yield Sent(id_, finished, blocked, seen_ns, kernel, due_ns, stamps)


def join(truth: Iterable[Sent], stamped: Iterable[RequestStamps], itl_ns: int) -> Joined:
    """Both sides of each request by its id; of one that was asked anew, the server's last."""
    sent = {one.id: one for one in truth}
    mine = {one.id: one for one in stamped}
    pairs = [(sent[id_], one) for id_, one in mine.items() if id_ in sent and _comparable(sent[id_], one)]
    waits: list[float] = []
    gaps: list[float] = []
    for server, client in pairs:
        lags = list(map(sub, client.stamps, server.stamps))
        waits.append(abs(lags[0] - (client.sent_ns - server.seen_ns)) / 1e3)
        gaps += [abs(later - earlier) / 1e3 for earlier, later in pairwise(lags)]
    waits.sort()
    gaps.sort()
    return Joined(
        requests=len(pairs),
        tokens=sum(len(server.stamps) for server, _ in pairs),
        left_out=len(sent.keys() | mine.keys()) - len(pairs),
        ttft_error_us=waits,
        itl_error_us=gaps,
        pace=_pace([server.stamps for server, _ in pairs], itl_ns),
        server_off_us=sorted(off for server, _ in pairs for off in _off_us(server.stamps, itl_ns)),
    )


def _comparable(server: Sent, client: RequestStamps) -> bool:
    known = server.finished and not server.blocked
    return known and 0 < len(server.stamps) == len(client.stamps)


def _off_us(stamps: "array[int]", itl_ns: int) -> list[float]:
    return [abs(later - earlier - itl_ns) / 1e3 for earlier, later in pairwise(stamps)]


def _pace(streams: Sequence["array[int]"], itl_ns: int) -> float | None:
    taken_ns = sum(stamps[-1] - stamps[0] for stamps in streams)
    asked_ns = itl_ns * sum(len(stamps) - 1 for stamps in streams)
    return asked_ns / taken_ns if taken_ns > 0 else None


def quantile(ordered: Sequence[float], q: int) -> float | None:
    """A percentile of ascending values; None below the samples it needs."""
    return percentile(ordered, q) if len(ordered) >= samples_needed(f"p{q}") else None
