"""The Live tab: what the candidate does now, or what became of it."""

from collections.abc import Iterable

from deploytui.record.facts import Failure
from deploytui.record.series import Series
from deploytui.record.state import CandidateState
from deploytui.tui.cells import View, memory_series, peak_bytes, phase_seconds, phase_share, running, verdict_cell
from deploytui.tui.figures import MISSING, clock, grouped, latency, number, percent, size
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.sparks import plot, sparkline

LABEL = 11
TEXT_LINES = 9
"""Lines beside the plots."""
HIGHEST = 4


def live_lines(candidate: CandidateState, view: View, width: int, height: int) -> tuple[Line, ...]:
    """Name and phase, then rates, requests, memory and the way it took; plots as high as there is room."""
    head = line(Piece(visible(candidate.name), "strong"), "  ", *standing(candidate, view))
    failed = failure_lines(candidate.failure) if candidate.failure else ()
    rows = min(max((height - TEXT_LINES - len(failed)) // 2, 1), HIGHEST)
    drawn = (*rate_lines(candidate, view, width, rows), *memory_lines(candidate, view, width, rows))
    return (head, *failed, *drawn, *phase_lines(candidate))


def standing(candidate: CandidateState, view: View) -> Line:
    """The phase with its progress in the candidate's own words; a verdict once it is through."""
    if candidate.phase == "queued":
        return line(Piece("not run" if view.over else "waits for its turn", "dim"))
    if not running(candidate, view):
        return verdict_cell(candidate, None, view) or line(Piece("done", "dim"))
    done, progress = phase_share(candidate, view), candidate.progress
    counted = amount(progress.done, progress.unit) if progress and progress.done and not progress.total else ""
    return line(
        Piece(candidate.phase, "busy"),
        f" {done:.0%}" if done is not None else f" {counted}" if counted else "",
        Piece(f" {clock(phase_seconds(candidate, view))}", "dim"),
        Piece(f"  {visible(progress.text)}" if progress and progress.text else "", "dim"),
    )


def amount(done: float, unit: str) -> str:
    """How much is done, where nobody knows of how much."""
    return size(done) if unit == "B" else f"{grouped(done)} {unit}".rstrip()


def failure_lines(failure: Failure) -> tuple[Line, ...]:
    """What failed, the engine's own words, and what to do."""
    lines = (
        line(Piece("✘ ", "bad"), Piece(visible(failure.what), "bad")),
        line("  ", Piece(visible(failure.why), "dim")) if failure.why else (),
        line("  → ", visible(failure.fix)) if failure.fix else (),
    )
    return tuple(part for part in lines if part)


def rate_lines(candidate: CandidateState, view: View, width: int, rows: int) -> Iterable[Line]:
    """The output rate's course and value, and what the engine has in hand."""
    live, rate = candidate.live, candidate.tokens.last
    measured = candidate.metrics.output_tok_s if candidate.metrics else None
    if rate is None:
        return
    now = running(candidate, view)
    yield from drawn("tokens/s", candidate.tokens, number(rate if now else measured), width, rows)
    if not now or live is None:
        yield from ((),) if rows > 1 else ()
        return
    parts = [f"in flight {count(live.in_flight)}", f"waiting {count(live.waiting)}", f"KV {percent(live.kv_usage)}"]
    done = f"{count(live.done)} of {count(live.total)} done" if live.total else f"{count(live.done)} done"
    failed = Piece(f"  {live.failed} failed", "bad") if live.failed else ""
    yield labelled("requests", f"{done}  {'  '.join(parts)}", failed)
    yield labelled("", Piece(f"last second  TTFT {latency(live.ttft_s)}  TPOT {latency(live.tpot_s)}", "dim"))


def memory_lines(candidate: CandidateState, view: View, width: int, rows: int) -> Iterable[Line]:
    """The memory's course, its newest value and its peak, and what it is of."""
    series = memory_series(candidate, view)
    peak = peak_bytes(candidate, view)
    if peak is None:
        return
    yield from drawn("memory", series, size(series.last), width, rows)
    where = "GPU, worst device, over pre-launch" if view.gpu else "host, the engine's process tree"
    yield labelled("", f"peak {size(peak)}", Piece(f"  {where}", "dim"))


def drawn(label: str, series: Series, value: str, width: int, rows: int) -> Iterable[Line]:
    """A label, the series as bars in some rows, and behind the lowest the value."""
    room = max(width - LABEL - len(value) - 3, 8)
    bars = plot(series, room, rows) if rows > 1 else [sparkline(series, room)]
    for place, row in enumerate(bars):
        last = place == len(bars) - 1
        yield labelled("" if place else label, Piece(row, "bars"), f"  {value}" if last else "")


def phase_lines(candidate: CandidateState) -> Iterable[Line]:
    """How long each phase took, and the parts of the start."""
    if candidate.phases:
        took = (f"{record.phase} {clock(round(record.seconds))}" for record in candidate.phases if record.seconds > 0.5)
        text = " · ".join(took)
        if text:
            yield labelled("phases", Piece(text, "dim"))
    start = candidate.cold_start
    if start is not None:
        total = MISSING if start.total_s is None else f"{number(start.total_s)} s"
        parts = (
            *(("prepare", start.prepare_s), ("launch", start.launch_s), ("load", start.load_s)),
            ("first token", start.first_token_s),
        )
        known = " · ".join(f"{word} {number(value)} s" for word, value in parts if value is not None)
        yield labelled("cold start", total, Piece(f"  {known}", "dim"))
    freed = candidate.freed
    if freed is not None and freed.survivors:
        names = dict(zip(freed.survivors, freed.survivor_names, strict=False))
        alive = ", ".join(f"pid {pid} {visible(names.get(pid, ''))}".rstrip() for pid in freed.survivors)
        yield line(Piece(f"✘ still alive after the stop: {alive}", "bad"))


def labelled(label: str, *parts: Piece | str) -> Line:
    """A line whose first part stands in the column of labels."""
    return line(Piece(f"{label:<{LABEL}}", "dim"), *parts)


def count(value: int | None) -> str:
    """A whole number, a dash where there is none."""
    return MISSING if value is None else grouped(value)
