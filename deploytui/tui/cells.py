"""The cells of a grid row: pure functions of a candidate, its verdict and the time."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from deploytui.record.facts import Distribution
from deploytui.record.measured import Metrics
from deploytui.record.series import Series
from deploytui.record.state import CandidateState
from deploytui.record.verdict import Verdict
from deploytui.tui.figures import MISSING, PENDING, clock, gibs, latency, number, share
from deploytui.tui.pieces import Line, Piece, Tone, line
from deploytui.tui.plain import visible
from deploytui.tui.sparks import sparkline
from deploytui.tui.words import DECISION_SIGNS, engine_title
from deploytui.units import NS

Quantile = Literal["p95", "p50"]
SPARK = 5
POINTS_PER_BAR = 4
SHORT_PHASES = {"downloading": "download"}
TONE_OF_DECISION: dict[str, Tone] = {"accept": "good", "tune": "warn", "reject": "bad"}


class View(Struct, frozen=True):
    """What the cells need to know beside the candidate."""

    now_ns: int | None
    """The runner's clock."""
    gpu: bool
    """Whether the memory column shows GPUs; else host memory."""
    quantile: Quantile
    over: bool
    """Whether nothing more will come: the session ended, or its runner is gone."""
    repeats: int = 1
    """Planned for each candidate, at all points of a sweep and in all launches."""
    tasks: int = 1


def running(candidate: CandidateState, view: View) -> bool:
    """Whether the candidate is being worked on."""
    return candidate.phase not in ("queued", "done") and not view.over


def row_cells(candidate: CandidateState, verdict: Verdict | None, view: View) -> Mapping[str, Line]:
    """All cells of a row by column, with shorter forms where a column has one."""
    metrics, firm = newest_metrics(candidate)
    brief = verdict_cell(candidate, verdict, view, cause=False)
    return {
        "name": line(Piece(visible(candidate.name), "strong" if running(candidate, view) else "plain")),
        "engine": engine_cell(candidate, version=True),
        "engine.short": engine_cell(candidate, version=False),
        "artifact": line(visible(candidate.artifact_label)),
        "phase": phase_cell(candidate, view, elapsed=True),
        "phase.short": phase_cell(candidate, view, elapsed=False),
        "memory": memory_cell(candidate, view),
        "tokens": tokens_cell(candidate, view),
        "ttft": latency_cell(metrics.ttft if metrics else None, firm, candidate, view),
        "tpot": latency_cell(metrics.tpot if metrics else None, firm, candidate, view),
        "quality": quality_cell(candidate, view),
        "verdict": verdict_cell(candidate, verdict, view),
        "verdict.short": brief,
        "verdict.sim": line(Piece("SIMULATED", "sim"), " ", *brief) if candidate.simulated else brief,
    }


def newest_metrics(candidate: CandidateState) -> tuple[Metrics | None, bool]:
    """The pooled metrics and True; before they are known those of the last repeat and False.

    Of a sweep both are those at the point that is decided on.
    """
    if candidate.metrics is not None:
        return candidate.metrics, True
    own = [record.metrics for record in candidate.repeats if record.step.point == candidate.point]
    return (own[-1] if own else None), False


def engine_cell(candidate: CandidateState, *, version: bool) -> Line:
    """The engine, with its version once it told; a simulated one says so in its place."""
    if candidate.simulated:
        return line(Piece("SIMULATED", "sim"))
    told = candidate.engine.version if candidate.engine and version else None
    return line(visible(engine_title(candidate.engine_name)), Piece(f" {visible(told)}" if told else "", "dim"))


def phase_cell(candidate: CandidateState, view: View, *, elapsed: bool) -> Line:
    """The phase; while it lasts with its percentage and how long it takes already."""
    if candidate.phase == "queued":
        return line(Piece("not run" if view.over else "queued", "dim"))
    if candidate.phase == "done":
        total = sum(record.seconds for record in candidate.phases)
        return line("done", Piece(f" {clock(total)}" if elapsed and total >= 1 else "", "dim"))
    if view.over:
        return line(Piece("cut off", "warn"), Piece(f" {candidate.phase}" if elapsed else "", "dim"))
    done = phase_share(candidate, view)
    word = SHORT_PHASES.get(candidate.phase, candidate.phase)
    passed = f" {clock(phase_seconds(candidate, view))}" if elapsed else ""
    return line(Piece(word, "busy"), "" if done is None else f" {done:.0%}", Piece(passed, "dim"))


def phase_seconds(candidate: CandidateState, view: View) -> float | None:
    """How long the present phase lasts [s]; None when it has no start or the time is not known."""
    if candidate.phase_since_ns is None or view.now_ns is None:
        return None
    return (view.now_ns - candidate.phase_since_ns) * NS


def phase_share(candidate: CandidateState, view: View) -> float | None:
    """How much of the present phase is done, 0 to 1; None when nobody knows."""
    progress, live = candidate.progress, candidate.live
    if progress is not None and progress.total:
        return min(progress.done / progress.total, 1.0)
    fresh = live is not None and live.at_ns >= (candidate.phase_since_ns or 0)
    part = min((live.done or 0) / live.total, 1.0) if live is not None and fresh and live.total else None
    match candidate.phase:
        case "warming":
            return part
        case "measuring":
            return _of_steps(len(candidate.repeats), part, view.repeats)
        case "quality":
            return _of_steps(len(candidate.tasks), part, view.tasks)
        case _:
            return None


def _of_steps(done: int, part: float | None, planned: int) -> float | None:
    """Finished steps and the part of the running one, of the planned; None before anything is known."""
    if not planned or (part is None and not done):
        return None
    return min((done + (part or 0.0)) / planned, 1.0)


def memory_series(candidate: CandidateState, view: View) -> Series:
    """The series the memory column draws."""
    return candidate.gpu if view.gpu else candidate.host


def peak_bytes(candidate: CandidateState, view: View) -> float | None:
    """The peak so far [bytes], of the GPU above its reading before launch or of the host; None when not read."""
    memory = candidate.memory
    told = None if memory is None else memory.peak_gpu_bytes if view.gpu else memory.peak_host_bytes
    seen = [point.max for point in memory_series(candidate, view).points()]
    return told if told is not None else max(seen, default=None)


def memory_cell(candidate: CandidateState, view: View) -> Line:
    """The course of the memory and its peak [GiB]."""
    return _drawn(memory_series(candidate, view), gibs(peak_bytes(candidate, view)), candidate, view)


def tokens_cell(candidate: CandidateState, view: View) -> Line:
    """The course of the output rate and its value [tok/s]: of all requests once measured, else of the last second."""
    measured = candidate.metrics.output_tok_s if candidate.metrics else None
    live = candidate.tokens.last if running(candidate, view) else None
    return _drawn(candidate.tokens, number(measured if measured is not None else live), candidate, view)


def _drawn(series: Series, text: str, candidate: CandidateState, view: View) -> Line:
    if text == MISSING:
        return absent(candidate, view)
    bars = sparkline(series, SPARK, per_bar=POINTS_PER_BAR)
    return line(Piece(f"{bars:<{SPARK}}", "bars" if running(candidate, view) else "dim"), f" {text:>5}")


def absent(candidate: CandidateState, view: View) -> Line:
    """What stands for a number that is not there: nothing before its turn, `…` while it may come, `–` after."""
    if candidate.phase == "queued":
        return ()
    return line(Piece(PENDING if running(candidate, view) else MISSING, "dim"))


def latency_cell(values: Distribution | None, firm: bool, candidate: CandidateState, view: View) -> Line:
    """The latency at the column's percentile; `~` marks one of a single repeat that others will follow."""
    value = getattr(values, view.quantile) if values else None
    if value is None:
        return absent(candidate, view)
    return line(latency(value)) if firm else line(Piece(f"~{latency(value)}", "dim"))


def quality_cell(candidate: CandidateState, view: View) -> Line:
    """The score over all tasks."""
    value = candidate.quality.score.value if candidate.quality else None
    return absent(candidate, view) if value is None else line(share(value))


def verdict_cell(candidate: CandidateState, verdict: Verdict | None, view: View, *, cause: bool = True) -> Line:
    """What became of the candidate, in a sign and a word, with the first cause."""
    kind = f": {candidate.failure.kind}" if candidate.failure and cause else ""
    kind = "" if kind == f": {candidate.status}" else kind
    if candidate.status == "unsupported":
        return line(Piece(f"– unsupported{kind}", "warn"))
    if candidate.status in ("load_failed", "invalid_config"):
        return line(Piece(f"✘ {candidate.status}{kind}", "bad"))
    if candidate.status == "cancelled":
        return line(Piece("– cancelled", "dim"))
    if candidate.run == "run_failed":
        return line(Piece(f"✘ run_failed{': oom' if candidate.oom and cause else kind}", "bad"))
    if running(candidate, view):
        return line(Piece("· running", "dim"))
    if candidate.phase == "queued" or verdict is None:
        return line()
    return judged(verdict)


def judged(verdict: Verdict) -> Line:
    """The verdict's word and the code of its first reason."""
    cause = f": {visible(verdict.reasons[0].code)}" if verdict.reasons and verdict.decision != "accept" else ""
    sign, word = DECISION_SIGNS[verdict.decision], verdict.decision
    return line(Piece(f"{sign} {word}{cause}", TONE_OF_DECISION[verdict.decision]))
