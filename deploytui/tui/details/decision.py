"""The decision in lines: the panel beside the tabs and the Decision tab."""

from collections.abc import Iterable, Sequence

from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.tui.cells import TONE_OF_DECISION
from deploytui.tui.details.live import failure_lines
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.words import DECISION_SIGNS


def decision_title(state: SessionState, *, over: bool) -> str:
    """`Decision so far` until it is the last word."""
    final = state.decision is not None and state.decision.final
    return "Decision" if final or over else "Decision so far"


def panel_lines(state: SessionState, *, over: bool) -> tuple[Line, ...]:
    """The session's decision, then a few lines a candidate, the best first."""
    return _lines(state, over=over, whole=False)


def whole_lines(state: SessionState, *, over: bool) -> tuple[Line, ...]:
    """All of it: every reason, note and held gate of every candidate, then the session's notes."""
    return (*_lines(state, over=over, whole=True), *note_lines(state.notes))


def _lines(state: SessionState, *, over: bool, whole: bool) -> tuple[Line, ...]:
    decision = state.decision
    if decision is None:
        return (line(Piece("none was made" if over else "none yet: nothing has been measured", "dim")),)
    return (*summary(decision), *_each(state, decision, whole=whole), *_around(decision))


def summary(decision: Decision) -> Iterable[Line]:
    """The sentence, then what holds for all; while it runs, what is still to come is no fault."""
    yield headline(decision)
    for reason in decision.reasons:
        pending = not decision.final and reason.code == "missing_measurements"
        yield line(Piece("· ", "dim"), Piece(visible(reason.text), "dim")) if pending else reason_line(reason)


def headline(decision: Decision) -> Line:
    """Such as `✔ ACCEPT vllm-bf16 on 1× H100-80G`."""
    word, _, rest = visible(decision.title.removeprefix("SIMULATED: ")).partition(" ")
    tone = TONE_OF_DECISION[decision.decision]
    stamp = (Piece("SIMULATED", "sim"), Piece(" ")) if decision.simulated else ()
    return line(
        *stamp, Piece(f"{DECISION_SIGNS[decision.decision]} ", tone), Piece(f"{word} ", tone), Piece(rest, "strong")
    )


def _around(decision: Decision) -> Iterable[Line]:
    """Who is left out, and the way back."""
    if decision.not_covered and decision.final:
        yield line(Piece("not covered  ", "dim"), ", ".join(map(visible, decision.not_covered)))
    if decision.accepted or decision.fallback:
        yield line(Piece("fallback  ", "dim"), visible(decision.fallback or "none measured"))


def _each(state: SessionState, decision: Decision, *, whole: bool) -> Iterable[Line]:
    for verdict in sorted(decision.verdicts, key=lambda verdict: _rank(verdict, decision)):
        if whole:
            yield ()
        yield from verdict_lines(verdict, state.candidates.get(verdict.candidate), whole=whole)
    if whole:
        yield ()


def _rank(verdict: Verdict, decision: Decision) -> tuple[int, int]:
    """Accepted by the objective, then those to tune, then the rejected."""
    order = ("accept", "tune", "reject").index(verdict.decision)
    accepted = decision.accepted
    return order, accepted.index(verdict.candidate) if verdict.candidate in accepted else 0


def verdict_lines(verdict: Verdict, candidate: CandidateState | None, *, whole: bool) -> Iterable[Line]:
    """A candidate's word, why, and which gates it held."""
    tone = TONE_OF_DECISION[verdict.decision]
    yield line(Piece(f"{DECISION_SIGNS[verdict.decision]} {visible(verdict.candidate)}  {verdict.decision}", tone))
    failure = candidate.failure if candidate is not None and verdict.decision == "reject" else None
    if failure is not None:
        yield from (line("  ", *part) for part in failure_lines(failure))
    for reason in () if failure is not None else verdict.reasons:
        yield line("  ", *reason_line(reason))
        if reason.next:
            yield line("    → ", visible(reason.next))
    for held in verdict.held:
        yield line("  ", *reason_line(held, held=True))
    for note in verdict.notes if whole else ():
        yield line("  ", Piece("· ", "dim"), visible(note.text or note.code))


def reason_line(reason: Reason, *, held: bool = False) -> Line:
    """A reason in its words, with the sign of a gate that was held or missed."""
    good = held or reason.passed
    return line(Piece("✔ " if good else "✘ ", "good" if good else "bad"), visible(reason.text or reason.code))


def note_lines(notes: Sequence[str]) -> Iterable[Line]:
    """The session's notes, newest last."""
    if notes:
        yield ()
        yield line(Piece("Notes", "strong"))
    for note in notes:
        level, _, text = note.partition(": ")
        sign = {"error": Piece("✘ ", "bad"), "warning": Piece("! ", "warn")}.get(level, Piece("· ", "dim"))
        yield line(sign, visible(text))
