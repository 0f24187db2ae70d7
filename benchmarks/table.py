"""The budget table in Markdown."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite

from benchmarks.figures import Figures
from benchmarks.long import MOMENTS
from benchmarks.pace import PACE
from benchmarks.streams import STREAMS, most

MB = 1e6


@dataclass(frozen=True)
class Budget:
    """One line of the table: a figure and the limit it must keep."""

    number: str
    what: str
    name: str
    limit: float
    at_least: bool = False
    floor: str | None = None
    """The floor's figure beside it."""
    scale: float = 1.0
    """What a unit of the table is in units of the figure."""
    unit: str = ""
    digits: int = 0
    ratio: bool = False
    """The figure is compared as a multiple of the floor's."""


BUDGETS = (
    Budget("1", "ITL error P99, screen live", "screen itl p99 us", 50, floor="floor itl p99 us", unit="µs", digits=1),
    Budget("2", "TTFT error P50", "screen ttft p50 us", 0.1, floor="floor ttft p50 us", scale=1e3, unit="ms", digits=3),
    Budget("2", "TTFT error P99", "screen ttft p99 us", 1, floor="floor ttft p99 us", scale=1e3, unit="ms", digits=3),
    Budget(
        "3",
        "load worker's CPU a token, screen live",
        "screen us per token",
        2.0,
        floor="floor us per token",
        unit="µs",
        digits=2,
        ratio=True,
    ),
    Budget(
        "3",
        "the same without the screen",
        "headless us per token",
        2.0,
        floor="floor us per token",
        unit="µs",
        digits=2,
        ratio=True,
    ),
    Budget(
        "5",
        "unpaced, 8 events a send",
        "worker burst 8",
        0.7,
        at_least=True,
        floor="floor burst 8",
        scale=1e6,
        unit="M tokens/s",
        digits=2,
    ),
    Budget(
        "5",
        "unpaced, 1 event a send",
        "worker burst 1",
        234,
        at_least=True,
        floor="floor burst 1",
        scale=1e3,
        unit="k tokens/s",
    ),
    Budget("6", "exec → first HTTP request, headless", "start any s", 0.4, unit="s", digits=2),
    Budget("6", "exec → first request of the load, headless", "start load s", 0.4, unit="s", digits=2),
    Budget("7", "last byte → result written, 1,000 requests", "headless written s", 0.2, unit="s", digits=2),
    Budget("7", "last byte → result written, 100,000 requests", "large written s", 2, unit="s", digits=2),
    Budget("7", "peak memory of a worker, 100,000 requests", "large worker bytes", 300, scale=MB, unit="MB"),
    Budget("8", "screen moves ITL error P99 by", "screen moves itl p99 us", 10, unit="µs", digits=1),
    Budget(
        "9",
        "offered load delivered, screen live",
        "screen delivered",
        99.5,
        at_least=True,
        floor="floor delivered",
        scale=0.01,
        unit="%",
        digits=2,
    ),
    Budget(
        "9",
        "whole-life CPU per 1,000 requests, headless",
        "headless cpu s per 1000",
        2,
        floor="floor cpu s per 1000",
        unit="s",
        digits=2,
    ),
    Budget("9", "peak memory, screen and load worker (PSS)", "screen pss screen and worker", 110, scale=MB, unit="MB"),
)
"""Numbers as in the list of budgets; 4 is made of several figures, see `_streams`."""
HEAD = "| # | what | median | limit | met | C floor | least … most (n) |\n|---|---|---|---|---|---|---|"


def markdown(figures: Figures) -> str:
    """All that was measured."""
    rows = [row for budget in BUDGETS if (row := _row(budget, figures))]
    place = next((at for at, row in enumerate(rows) if row[2] > "4"), len(rows))
    rows[place:place] = list(_streams(figures))
    return "\n".join((HEAD, *rows, "", *(f"- {remark}" for remark in _remarks(figures)))).rstrip()


def _row(budget: Budget, figures: Figures) -> str | None:
    value, ends = figures.median(budget.name), figures.ends(budget.name)
    if value is None or ends is None:
        return None
    floor = figures.median(budget.floor) if budget.floor else None
    count = len(figures.values[budget.name])
    judged = value / floor if budget.ratio and floor else value / budget.scale
    met = judged >= budget.limit if budget.at_least else judged <= budget.limit
    show = _shown(budget)
    cells = (
        budget.number,
        budget.what,
        f"{show(value)} {budget.unit}" + (f" = {judged:.2f} ×" if budget.ratio else ""),
        f"{'≥' if budget.at_least else '≤'} {budget.limit:g} {'×' if budget.ratio else budget.unit}",
        "yes" if met else "**no**",
        show(floor) if floor is not None else "–",
        f"{show(ends[0])} … {show(ends[1])} ({count})",
    )
    return f"| {' | '.join(cells)} |"


def _shown(budget: Budget) -> Callable[[float], str]:
    return lambda value: f"{value / budget.scale:.{budget.digits}f}" if isfinite(value) else "unknown"


def _streams(figures: Figures) -> Iterator[str]:
    found = most(figures)
    if found is None:
        return
    steps = [(n, figures.median(f"{n} streams itl p99 us")) for n in STREAMS]
    each = ", ".join(f"{n}: {p99:.0f} µs" for n, p99 in steps if p99 is not None)
    rounds = len(figures.values[f"{STREAMS[0]} streams itl p99 us"])
    yield (
        f"| 4 | streams at 20 ms with ITL error P99 < 1 ms | {found} | ≥ 2000 | "
        f"{'yes' if found >= 2000 else '**no**'} | {_of_floor(figures)} | {each} ({rounds}) |"
    )


def _of_floor(figures: Figures) -> str:
    found = most(figures, "floor ")
    return "–" if found is None else f"{'≥ ' if found == STREAMS[-1] else ''}{found}"


def _remarks(figures: Figures) -> Iterator[str]:
    yield from figures.remarks
    for text, name, scale in (
        ("ITL error P99 without the screen {:.1f} µs", "headless itl p99 us", 1.0),
        ("the floor's own user-space stamps are {:.0f} µs off at P99", "floor user itl p99 us", 1.0),
        ("the server itself sent late by {:.1f} ms at P99", "server late p99 us", 1e3),
        ("exec → the journal begins {:.2f} s", "start session s", 1.0),
        ("exec → prompts counted and made {:.2f} s", "start prompts s", 1.0),
        ("last byte → the repeat's line in the journal, 1,000 requests: {:.2f} s", "headless repeat s", 1.0),
        ("last byte → end of the process, 1,000 requests: {:.2f} s", "headless exit s", 1.0),
        ("last byte → end of the process, 100,000 requests: {:.2f} s", "large exit s", 1.0),
        ("the server itself sends {:.0f} k tokens/s, one event a send, to a client that rests", "server burst 1", 1e3),
        ("the server itself sends {:.2f} M tokens/s, 8 events a send, to a client that rests", "server burst 8", 1e6),
        ("whole-life CPU per 1,000 requests of a run of 5,000, headless {:.2f} s", "longer cpu s per 1000", 1.0),
        ("whole-life CPU per 1,000 requests with the screen {:.2f} s", "screen cpu s per 1000", 1.0),
        ("peak memory of all processes, screen live (PSS) {:.0f} MB", "screen pss all", MB),
        ("peak memory of all processes without the screen (PSS) {:.0f} MB", "headless pss all", MB),
    ):
        value = figures.median(name)
        if value is not None:
            yield text.format(value / scale)
    if (ends := figures.ends(PACE)) is not None:
        yield (
            f"the client's core read the same JSON in {ends[0]:.2f} … {ends[1]:.2f} µs an event, before each round: "
            "how much of it others left"
        )
    yield from _processes(figures)
    yield from _memory(figures)


def _processes(figures: Figures) -> Iterator[str]:
    for who, text in (("headless", "without the screen"), ("screen", "screen live")):
        known = [(role, figures.median(f"{who} cpu s {role}")) for role in ("screen", "runner", "worker", "sampler")]
        if parts := [f"{role} {spent:.2f}" for role, spent in known if spent is not None]:
            yield f"whole-life CPU by process, {text} [s]: {', '.join(parts)}"


def _memory(figures: Figures) -> Iterator[str]:
    moments = [(share, figures.median(f"rss at {share:.0%}")) for share in MOMENTS]
    if known := [f"{share:.0%}: {rss / MB:.1f}" for share, rss in moments if rss is not None]:
        yield f"resident memory of a worker with 1,000 streams open, MB over its run: {', '.join(known)}"
