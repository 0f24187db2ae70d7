"""How fast the client's core is at the moment: on a shared machine it can lose a third for minutes."""

import time

import msgspec

from benchmarks.cores import on_cores
from benchmarks.figures import Figures

PACE = "core us per event"
EVENTS, TIMES = 100, 50
_LINE = msgspec.json.encode(
    {"id": "x" * 20, "object": "chat.completion.chunk", "choices": [{"delta": {"content": " w"}}]}
)


def note_pace(core: int, figures: Figures) -> None:
    """Time a fixed piece of work there: reading JSON [µs an event], the best of some tries."""
    lines, decoder = b"\n".join([_LINE] * EVENTS), msgspec.json.Decoder()
    with on_cores(core):
        spent = min(_timed(decoder, lines) for _ in range(TIMES))
    figures.add(PACE, spent / EVENTS / 1e3)


def _timed(decoder: "msgspec.json.Decoder[object]", lines: bytes) -> int:
    begin = time.perf_counter_ns()
    decoder.decode_lines(lines)
    return time.perf_counter_ns() - begin
