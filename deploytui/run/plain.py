"""Progress as plain lines for a terminal without a screen, a log file or a pipe."""

import time
from typing import TextIO

from deploytui.record.before import fit_phrase, preparation_phrase, recovery_phrase
from deploytui.record.capacity import Search
from deploytui.record.engine_events import FitRead, PreparationDone, RecoveryDone
from deploytui.record.events import (
    AnyEvent,
    CapacityFound,
    Decided,
    Note,
    PhaseEnded,
    PhaseStarted,
    Planned,
    Progress,
    RepeatDone,
    RunSet,
    SessionStarted,
    StatusSet,
    TaskDone,
)
from deploytui.record.facts import Failure
from deploytui.record.fidelity import client_bound, cut_off, failures, tool_brief
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics
from deploytui.record.state import SessionState
from deploytui.session.speech import fitting, shown
from deploytui.units import GIB, ms

PROGRESS_S = 5.0
"""Between two lines about one download or load [s]."""


class PlainView:
    """Writes one line for each thing worth a line; a terminal that is gone is no reason to stop."""

    def __init__(self, out: TextIO) -> None:
        self._out: TextIO | None = out
        self._began = time.monotonic()
        self._last_progress = 0.0

    def see(self, event: AnyEvent, state: SessionState) -> None:
        """Tell what `event` means, if it means something to a reader."""
        if isinstance(event, Progress) and not self._due():
            return
        if (line := told(event, state)) is not None:
            self.write(line)

    def complain(self, text: str) -> None:
        """Say what is wrong with the runner itself."""
        self.write(f"!! {' '.join(text.splitlines())}")

    def write(self, line: str) -> None:
        """One line with the time since the start; control characters made visible."""
        if self._out is None:
            return
        seconds = int(time.monotonic() - self._began)
        try:
            self._out.write(fitting(f"[{seconds // 60:02}:{seconds % 60:02}] {shown(line)}\n", self._out.encoding))
            self._out.flush()
        except OSError:
            self._out = None

    def _due(self) -> bool:
        now = time.monotonic()
        due = now - self._last_progress >= PROGRESS_S
        self._last_progress = now if due else self._last_progress
        return due


def told(event: AnyEvent, state: SessionState) -> str | None:
    """The event in one line; None for what only a screen shows."""
    match event:
        case SessionStarted(name=name, session=session, simulated=simulated):
            return f"session {session} of {name}" + (" (SIMULATED: a mock engine takes part)" if simulated else "")
        case Planned(candidates=rows, search=Search() as search):
            return _searching(len(rows), search) if len(event.steps) == len(rows) else None
        case Planned(candidates=rows, steps=steps):
            return f"{len(rows)} candidates, {len(steps)} steps"
        case PhaseStarted(candidate=name, phase=phase) if phase not in ("done", "queued"):
            return f"{name}: {phase}"
        case PhaseEnded(candidate=name, phase="loading", evidence=evidence) if "load_s" in evidence:
            return f"{name}: serves after {evidence['load_s']:.1f} s"
        case FitRead(candidate=name, fit=fit):
            said = fit_phrase(fit)
            return f"{name}: {said}" if said else None
        case PreparationDone(candidate=name, preparation=made):
            return f"{name}: prepared {preparation_phrase(made)}"
        case RecoveryDone(candidate=name, checks=checks):
            return f"{name}: {'; '.join(map(recovery_phrase, checks))}"
        case Progress(candidate=name) if event.text or event.total:
            return f"{name}: {_progress(event)}"
        case StatusSet(candidate=name, status=status, failure=failure):
            return f"{name}: {status}{_because(failure)}" if failure else None
        case RunSet(candidate=name, run=run, failure=failure):
            return f"{name}: {run}{_because(failure)}" if failure else None
        case RepeatDone(step=step, metrics=metrics):
            return f"{step.candidate}: {_place(step, state)}repeat {(step.repeat or 0) + 1}: {_figures(metrics)}"
        case CapacityFound(candidate=name, capacity=found):
            return f"{name}: capacity {found.span}" + (f"; at {found.first_bad:.6g}: {found.why}" if found.why else "")
        case TaskDone(step=step, score=score):
            value = "–" if score.score.value is None else f"{score.score.value:.2f}"
            return f"{step.candidate}: {score.task}: score {value} (n={score.score.n})"
        case Decided(decision=decision):
            return decision.title if decision.final else None
        case Note(level=level, text=text):
            return f"{level}: {text}"
    return None


def _searching(candidates: int, search: Search) -> str:
    what = "concurrent requests" if search.by == "concurrency" else "requests per second"
    time_s = "" if search.budget_s is None else f", within {search.budget_s:g} s of measuring"
    return f"{candidates} candidates, searching {search.lowest:.6g} to {search.highest:.6g} {what}{time_s}"


def _place(step: StepKey, state: SessionState) -> str:
    """The point of a load that has several, such as `concurrency 16, `."""
    several = len(state.points) > 1 or state.search is not None
    label = next((one.label for one in state.points if one.point == step.point), "") if several else ""
    return f"{label}, " if label else ""


def _progress(event: Progress) -> str:
    if not event.total:
        return event.text
    if event.unit == "B":
        return f"{event.text} {event.done / GIB:.2f} of {event.total / GIB:.2f} GiB"
    return f"{event.text} {event.done:g} of {event.total:g} {event.unit}".strip()


def _because(failure: Failure | None) -> str:
    if failure is None:
        return ""
    why = f"({failure.why})" if failure.why else ""
    return " – " + " ".join(part for part in (failure.what, why, failure.fix) if part)


def _figures(metrics: Metrics) -> str:
    ttft, tpot = ms(metrics.ttft.p50), ms(metrics.tpot.p50)
    due = ms(metrics.ttft_scheduled.p50) if metrics.ttft_scheduled else None
    parts = [f"{metrics.ok} of {metrics.requests} ok{_errors(metrics)} in {metrics.duration_s or 0:.1f} s"]
    parts += [f"TTFT p50 {ttft:.0f} ms"] if ttft is not None else []
    parts += [f"{due:.0f} ms from the scheduled time"] if due is not None else []
    parts += [f"TPOT p50 {tpot:.1f} ms"] if tpot is not None else []
    parts += [f"{metrics.output_tok_s:.1f} tok/s"] if metrics.output_tok_s is not None else []
    return "; ".join((", ".join(parts), client_bound(metrics.tool) or tool_brief(metrics.tool)))


def _errors(metrics: Metrics) -> str:
    cut = cut_off(metrics)
    parts = [failures(metrics), f"{cut} cut off by the load's end" if cut else ""]
    known = ", ".join(part for part in parts if part)
    return f" ({known})" if known else ""
