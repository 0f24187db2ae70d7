"""Capacity: what the gates say of one load, and the decision of a session that searched for the most. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from deploytui.compare.comparable import mismatches
from deploytui.decide.evidence import no_result, unfit
from deploytui.decide.gates import Asked, asked_gates, judged, missing
from deploytui.decide.reasons import plain
from deploytui.decide.session import NONE_MEASURED, is_finished
from deploytui.decide.subject import Subject, baseline_name, subject
from deploytui.decide.title import full_title, hardware
from deploytui.decide.verdict import verdict_of
from deploytui.plan.capacity import Answer
from deploytui.profile.schema import Gates, Profile
from deploytui.record.capacity import Capacity
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.record.words import DecisionWord

BOUNDS = ("max_ttft_ms", "max_tpot_ms", "max_e2e_ms", "min_success_rate")
"""Gates that more load breaks: the search goes by them."""
FLOORS = ("min_output_tok_s", "min_request_s", "min_goodput", "max_cost_per_mtok")
"""Gates that more load helps to hold: they are looked at where the capacity lies."""
HOPELESS = 2.0
"""Times its limit from which a latency is beyond repair by further repeats."""
UNASKED = ("nothing_asked", "quality_not_measured", "client_bound")
"""What a session about capacity does not ask for, or says in the notes of the capacity."""
OBJECTIVE = "capacity"


def bounds(gates: Gates) -> tuple[Asked, ...]:
    """The limits a search goes by; empty when the profile sets none."""
    return tuple(asked for asked in asked_gates(gates) if asked.gate.key in BOUNDS)


def answer_at(subject: Subject) -> Answer:
    """What all repeats at the subject's point say together; with nothing answered nothing can be hoped."""
    metrics = subject.metrics
    if metrics is None or metrics.ok == 0:
        return Answer(held=False, hopeless=True, gate="success_rate", why="no request succeeded")
    lines = [(asked, judged(subject, asked)) for asked in bounds(subject.profile.gates)]
    missed = [(asked, line) for asked, line in lines if line.value is None or (line.margin or 0.0) < 0]
    worst = max(missed, key=lambda pair: _excess(*pair), default=None)
    return Answer(
        held=not missed,
        settled=all(line.code not in ("noisy", "insufficient_samples") for _, line in lines),
        hopeless=any(_is_hopeless(subject, asked, line) for asked, line in missed),
        gate="" if worst is None else worst[0].metric,
        why="" if worst is None else worst[1].text,
    )


def _excess(asked: Asked, line: Reason) -> float:
    """How far a gate is missed, as a share of its limit; what can't be judged comes first."""
    return float("inf") if line.margin is None else -line.margin / asked.limit


def _is_hopeless(subject: Subject, asked: Asked, line: Reason) -> bool:
    """Whether no further repeat can mend it: far beyond the limit, or not measurable here at all."""
    if line.code == "missing_measurements":
        return True
    if asked.gate.key == "min_success_rate":
        return line.high is not None and line.high < asked.limit
    base, _, statistic = asked.metric.partition(".")
    median: float | None = getattr(subject.metrics, base.removesuffix("_ms")).p50
    above = median is not None and statistic in ("p90", "p95", "p99", "max") and median * 1e3 > asked.limit
    return above or (line.value is not None and line.value > HOPELESS * asked.limit)


def noted(subject: Subject, capacity: Capacity) -> Capacity:
    """The capacity with a note for each load at which the load generator itself may have been the limit."""
    asked_at = {point.point: point.asked for point in subject.state.points}
    bound = sorted(
        asked
        for point, metrics in subject.seen.measured.items()
        if metrics.tool.client_bound and (asked := asked_at.get(point)) is not None
    )
    notes = tuple(f"At {asked:.6g} the load generator itself was at its limit: client_bound." for asked in bound)
    return replace(capacity, notes=(*capacity.notes, *notes))


def capacity_verdict(subject: Subject) -> Verdict:
    """Accepted with a capacity and what it must hold there; rejected when the lowest load was too much already."""
    failed = tuple(no_result(subject))
    capacity = subject.seen.capacity
    if failed or capacity is None or not capacity.tried:
        nothing = missing("capacity", "no load was measured to its end", fix="Give the search more time: --budget.")
        return verdict_of(subject.name, failed or (nothing,))
    lines = [judged(subject, asked) for asked in asked_gates(subject.profile.gates) if asked.gate.key in BOUNDS]
    floors = [judged(subject, asked) for asked in asked_gates(subject.profile.gates) if asked.gate.key in FLOORS]
    found = capacity.value is not None
    open_ = [line for line in lines if not line.passed]
    reasons = (
        *(replace(line, next=plain(line.code).next) for line in _mismatches(subject)),
        *(line for line in unfit(subject) if line.code not in UNASKED),
        *([] if found else open_),
        *(line for line in floors if not line.passed),
    )
    held = (line for line in (*lines, *floors) if line.passed)
    return verdict_of(subject.name, reasons, held=held, notes=_notes(capacity, open_ if found else ()))


def _mismatches(subject: Subject) -> tuple[Reason, ...]:
    point = -1 if subject.point is None else subject.point
    return mismatches(subject.profile, subject.state, subject.name, point)


def _notes(capacity: Capacity, undecided: Iterable[Reason]) -> Iterable[Reason]:
    yield from (Reason(code="capacity", text=note) for note in capacity.notes)
    yield from (Reason(code=line.code, metric=line.metric, text=line.text) for line in undecided)


def decide_capacity(profile: Profile, state: SessionState, final: bool = True) -> Decision:
    """Accept when every candidate has a capacity, reject when none has, else tune; the highest leads."""
    finished = [row for row in state.candidates.values() if is_finished(state, row, final)]
    subjects = {row.name: replace(subject(profile, state, row.name), point=row.point) for row in finished}
    verdicts = tuple(capacity_verdict(one) for one in subjects.values())
    pending = tuple(name for name in state.candidates if name not in subjects)
    order = _order(subjects[found.candidate].seen for found in verdicts if found.decision == "accept")
    leads = [row.name for row in order if _is_level(order[0], row)]
    winner = leads[0] if len(leads) == 1 else None
    chosen = subjects.get(leads[0]) if leads else None
    return Decision(
        decision=_word(verdicts, bool(pending)),
        title=full_title(_sentence(finished), hardware(state, chosen), final=final, simulated=state.simulated),
        final=final,
        accepted=tuple(row.name for row in order),
        winner=winner,
        recommended=leads[0] if leads else None,
        objective=OBJECTIVE,
        tie=tuple(leads) if len(leads) > 1 else (),
        reasons=_reasons(verdicts, pending),
        not_covered=pending,
        fallback=_fallback(profile, state, verdicts),
        simulated=state.simulated,
        verdicts=verdicts,
    )


def _word(verdicts: tuple[Verdict, ...], pending: bool) -> DecisionWord:
    words = {found.decision for found in verdicts}
    return "tune" if pending or len(words) != 1 else words.pop()


def _order(rows: Iterable[CandidateState]) -> list[CandidateState]:
    """The rows by falling capacity."""
    return sorted(rows, key=lambda row: -_value(row))


def _value(row: CandidateState) -> float:
    return row.capacity.value if row.capacity and row.capacity.value is not None else 0.0


def _is_level(best: CandidateState, other: CandidateState) -> bool:
    """Whether the interval of the other reaches that of the best."""
    end = other.capacity.first_bad if other.capacity else None
    return best is other or end is None or end > _value(best)


def _sentence(finished: Iterable[CandidateState]) -> str:
    """Such as `CAPACITY a 24, b none: concurrent requests within the gates`."""
    found = [(row.name, row.capacity) for row in finished]
    each = ", ".join(f"{name} {capacity.span if capacity else 'none'}" for name, capacity in found)
    by = next((capacity.by for _, capacity in found if capacity), "concurrency")
    what = "concurrent requests" if by == "concurrency" else "requests per second"
    return f"CAPACITY {each}: {what} within the gates" if found else "CAPACITY: nothing is known yet"


def _reasons(verdicts: tuple[Verdict, ...], pending: tuple[str, ...]) -> tuple[Reason, ...]:
    causes = (
        replace(one.reasons[0], text=f"{one.candidate}: {one.reasons[0].text}") for one in verdicts if one.reasons
    )
    waiting = (
        missing("capacity", f"{name}: not measured to its end", fix="Let the session finish, or measure it again.")
        for name in pending
    )
    return (*causes, *waiting)


def _fallback(profile: Profile, state: SessionState, verdicts: Iterable[Verdict]) -> str:
    name = baseline_name(profile, state)
    return next((one.candidate for one in verdicts if one.candidate == name and one.comparable), NONE_MEASURED)
