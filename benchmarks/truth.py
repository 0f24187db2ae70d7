"""What a client said about each token beside what the server knows: errors of TTFT and of every gap."""

import struct
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.server import Served

_FLOOR = struct.Struct("<IIq")
_STAMPS = struct.Struct("<IIB7xq")
MAGIC = b"DTSTAMP2"
NS_PER_US = 1000


class Heard(NamedTuple):
    """One request as a client saw it; CLOCK_MONOTONIC [ns]."""

    id: int
    sent_ns: int
    came_ns: "array[int]"
    """Arrival of each token."""


@dataclass(frozen=True)
class Errors:
    """How far a client's figures are off [µs], and how much of the offered load reached it."""

    ttft_us: list[float]
    """Of each request, without sign, ascending."""
    itl_us: list[float]
    """Of each gap between tokens, without sign, ascending."""
    delivered: float | None
    """Tokens that came, of those due, while all streams were running; None when they never all were."""
    late_us: list[float]
    """How late the server itself sent each token, ascending."""


def heard_by_floor(path: Path) -> list[Heard]:
    """The stamps file of the client in C."""
    return list(_entries(path.read_bytes(), _FLOOR, 0))


def heard_by_session(folder: Path) -> list[Heard]:
    """All chunk stamps of the measured repeats of a session, from its sidecars."""
    found: list[Heard] = []
    for path in sorted(folder.glob("candidates/*/l*.stamps.w*.bin")):
        content = path.read_bytes()
        if not content.startswith(MAGIC):
            raise RuntimeError(f"{path} does not begin with {MAGIC.decode()}")
        found += _entries(content, _STAMPS, len(MAGIC))
    return found


def _entries(content: bytes, head: struct.Struct, at: int) -> Iterator[Heard]:
    while at < len(content):
        request, count, *_, sent = head.unpack_from(content, at)
        at += head.size
        yield Heard(request, sent, array("q", content[at : at + 8 * count]))
        at += 8 * count


def joined(heard: Iterable[Heard], served: Iterable[Served]) -> list[tuple[Heard, Served]]:
    """Each request of a client with what the server knows of it.

    Warm-up, calibration and repeats use the same ids again: the right one is the first that arrived after the sending.
    """
    by_id: defaultdict[int, list[Served]] = defaultdict(list)
    for known in served:
        by_id[known.id].append(known)
    pairs = []
    for said in heard:
        later = [known for known in by_id[said.id] if known.arrived_ns >= said.sent_ns]
        if later:
            pairs.append((said, min(later, key=lambda known: known.arrived_ns)))
    return pairs


def errors(pairs: Sequence[tuple[Heard, Served]], itl_us: int) -> Errors:
    """The errors of a paced load, whose tokens were due every `itl_us`."""
    ttft: list[float] = []
    itl: list[float] = []
    late: list[float] = []
    for said, true in pairs:
        came, sent = said.came_ns, true.sent_ns
        if came:
            ttft.append(abs((came[0] - said.sent_ns) - (sent[0] - true.arrived_ns)) / NS_PER_US)
        shifts = [a - b for a, b in zip(came, sent, strict=False)]
        itl += [abs(b - a) / NS_PER_US for a, b in pairwise(shifts)]
        late += [(at - due) / NS_PER_US for at, due in zip(sent, _due(true, itl_us), strict=False)]
    return Errors(sorted(ttft), sorted(itl), _delivered(pairs, itl_us), sorted(late))


def _due(true: Served, itl_us: int) -> range:
    step = itl_us * NS_PER_US
    return range(true.first_due_ns, true.first_due_ns + true.asked_tokens * step, step)


def _delivered(pairs: Sequence[tuple[Heard, Served]], itl_us: int) -> float | None:
    begin = max((true.first_due_ns for _, true in pairs), default=0)
    end = min((_due(true, itl_us)[-1] for _, true in pairs), default=0)
    step = itl_us * NS_PER_US
    end = begin + (end - begin) // step * step  # whole steps, in which every stream owes the same
    if begin >= end:
        return None
    due = sum(begin <= at < end for _, true in pairs for at in _due(true, itl_us))
    return sum(begin <= at < end for said, _ in pairs for at in said.came_ns) / due


def quantile(ordered: Sequence[float], q: float) -> float:
    """The q-quantile (0..1) of ascending values, by linear interpolation; NaN of nothing."""
    if not ordered:
        return float("nan")
    place = (len(ordered) - 1) * q
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
