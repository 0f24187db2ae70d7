"""Where a session is: pure functions of its state and the time."""

from collections.abc import Iterable

from deploytui.record.state import CandidateState, SessionState
from deploytui.units import NS

WORKED = frozenset({"measuring", "warming", "quality"})


def runner_ns(state: SessionState, wall_s: float) -> int | None:
    """The runner's monotonic clock at a wall time, through the anchor of its start; None before there is one.

    Never before the newest event: hosts' wall clocks differ a little.
    """
    if state.started is None or state.at_ns is None:
        return None
    return max(state.started.at_ns + int((wall_s - state.started.wall_s) / NS), state.at_ns)


def elapsed_s(state: SessionState, now_ns: int | None) -> float | None:
    """How long this runner works already, or worked [s]."""
    if state.started is None:
        return None
    until = state.ended.at_ns if state.ended else now_ns
    return None if until is None else max(until - state.started.at_ns, 0) * NS


def active(state: SessionState) -> CandidateState | None:
    """The candidate that is being worked on; None between two, before and after all."""
    rows = state.candidates.values()
    return next((row for row in rows if row.phase not in ("queued", "done")), None)


def turn(state: SessionState) -> int:
    """Which candidate's turn it is, from 1; the number of those done when none is active."""
    done = sum(row.phase == "done" for row in state.candidates.values())
    return done + (active(state) is not None)


def eta_s(state: SessionState, now_ns: int | None) -> float | None:
    """What is left [s], judged by the candidates that were measured whole and by the one that is; None before that."""
    if now_ns is None or state.ended is not None or state.paused:
        return None
    rows = list(state.candidates.values())
    working = active(state)
    whole = [_spent(row) for row in rows if row.phase == "done" and row.metrics is not None]
    expected = _expected(state, working, now_ns) if working else None
    typical = sum(whole) / len(whole) if whole else expected
    if typical is None:
        return None
    waiting = sum(row.phase == "queued" for row in rows)
    here = 0.0
    if working is not None:
        here = max((expected or typical) - _spent(working) - _since(working, now_ns), 0.0)
    return here + waiting * typical


def _expected(state: SessionState, working: CandidateState, now_ns: int) -> float | None:
    """How long the working candidate will have taken in all [s]; None before enough of it is measured."""
    share = steps_share(state, working)
    if share is None or share < 0.1:
        return None
    measured = _seconds(working, WORKED) + (_since(working, now_ns) if working.phase in WORKED else 0.0)
    rest = _spent(working) - _seconds(working, WORKED)
    return rest + measured / share


def steps_share(state: SessionState, row: CandidateState) -> float | None:
    """How many of the candidate's planned requests are done, 0 to 1; None without a plan, or when it grows."""
    if state.search is not None:
        return None
    steps = [step for step in state.steps if step.key.candidate == row.name]
    total = sum(step.requests for step in steps)
    finished = {record.step for record in row.repeats} | {record.step for record in row.tasks}
    done = sum(step.requests for step in steps if step.key in finished)
    live = row.live
    if row.phase == "measuring" and live is not None and live.at_ns >= (row.phase_since_ns or 0):
        running = next((step.requests for step in steps if step.key not in finished), 0)
        done += min(live.done or 0, running)
    return done / total if total else None


def _spent(row: CandidateState) -> float:
    return sum(record.seconds for record in row.phases)


def _seconds(row: CandidateState, phases: Iterable[str]) -> float:
    return sum(record.seconds for record in row.phases if record.phase in phases)


def _since(row: CandidateState, now_ns: int) -> float:
    return 0.0 if row.phase_since_ns is None else max(now_ns - row.phase_since_ns, 0) * NS
