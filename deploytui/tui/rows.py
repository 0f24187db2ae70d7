"""From a session's state to the rows of the grid; a row nothing happened to is the same object again."""

from collections import Counter
from collections.abc import Collection

from msgspec.structs import replace

from deploytui.record.facts import Distribution
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision, Verdict
from deploytui.tui.cells import Quantile, View, row_cells, running
from deploytui.tui.headline import Standing
from deploytui.tui.pieces import text_of
from deploytui.tui.widgets.grid import GridRow

Made = tuple[CandidateState, Verdict | None, str, bool, View]


class RowBook:
    """Makes rows and keeps them for as long as what they are made of is the same."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Made, GridRow]] = {}

    def rows(self, standing: Standing, marked: Collection[str], needle: str = "") -> list[GridRow]:
        """The rows in the profile's order; only those that hold the needle when there is one."""
        state, view = standing.state, view_of(standing)
        verdicts = {verdict.candidate: verdict for verdict in state.decision.verdicts} if state.decision else {}
        rows = [
            self._row((row, verdicts.get(name), star(name, state.decision), name in marked, view))
            for name, row in state.candidates.items()
        ]
        return [row for row in rows if matches(row, needle)] if needle else rows

    def _row(self, made: Made) -> GridRow:
        candidate, verdict, sign, mark, view = made
        kept = self._kept.get(candidate.name)
        if kept is not None and _same(kept[0], made):
            return kept[1]
        row = GridRow(candidate.name, row_cells(candidate, verdict, view), sign, mark)
        self._kept[candidate.name] = (made, row)
        return row


def _same(old: Made, new: Made) -> bool:
    """Whether a row would come out the same; the time only matters to the candidate that is worked on."""
    if old[0] is not new[0] or old[2:4] != new[2:4] or old[1] != new[1]:
        return False
    old_view, view = old[4], new[4]
    return replace(old_view, now_ns=view.now_ns) == view and (
        old_view.now_ns == view.now_ns or not running(new[0], view)
    )


def matches(row: GridRow, needle: str) -> bool:
    """Whether the needle is anywhere in what tells the row from others."""
    parts = (row.name, *(text_of(row.cells[key]) for key in ("engine", "artifact", "phase", "verdict")))
    return needle.casefold() in " ".join(parts).casefold()


def view_of(standing: Standing) -> View:
    """What all rows share."""
    state = standing.state
    repeats = Counter(step.key.candidate for step in state.steps if step.key.repeat is not None)
    tasks = Counter(step.key.candidate for step in state.steps if step.key.task is not None)
    return View(
        now_ns=standing.now_ns,
        gpu=has_gpu(state),
        quantile=quantile(state),
        over=standing.over,
        repeats=0 if state.search is not None else max(repeats.values(), default=1),
        tasks=max(tasks.values(), default=1),
    )


def has_gpu(state: SessionState) -> bool:
    """Whether the memory column is about GPUs."""
    if state.environment is not None and state.environment.gpus:
        return True
    return any(
        row.gpu.last is not None or (row.memory is not None and row.memory.peak_gpu_bytes is not None)
        for row in state.candidates.values()
    )


def quantile(state: SessionState) -> Quantile:
    """p95; p50 as soon as one measured candidate has too few samples, so that all rows show the same."""
    for row in state.candidates.values():
        metrics = row.metrics
        if metrics is not None and any(_only_median(values) for values in (metrics.ttft, metrics.tpot)):
            return "p50"
    return "p95"


def _only_median(values: Distribution) -> bool:
    return values.p50 is not None and values.p95 is None


def star(name: str, decision: Decision | None) -> str:
    """★ for the winner, ☆ for the one that is recommended in a tie."""
    if decision is None:
        return ""
    if decision.winner == name:
        return "★"
    return "☆" if decision.winner is None and decision.recommended == name else ""
