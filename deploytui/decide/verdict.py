"""The verdict on one candidate: comparability, then evidence, then gates."""

from collections.abc import Iterable

from msgspec.structs import replace

from deploytui.compare.comparable import mismatches
from deploytui.decide.effects import by_precedence, decided, effect_of
from deploytui.decide.evidence import is_clumped, no_result, notes, smoke, unfit
from deploytui.decide.gates import Asked, asked_gates, judged, unavailable
from deploytui.decide.reasons import plain
from deploytui.decide.subject import Subject
from deploytui.record.verdict import Reason, Verdict

WITHHELD = ("ttft_ms", "tpot_ms")
"""Metrics that a stream in clumps says nothing about."""


def verdict(subject: Subject) -> Verdict:
    """What becomes of a finished candidate. Of several reasons the first in the table's precedence decides; the others
    are told all the same, so that one more session can mend them all.
    """
    failed = tuple(no_result(subject))
    if failed:
        return verdict_of(subject.name, failed, notes=notes(subject))
    asked = asked_gates(subject.profile.gates)
    spoiled = tuple(unfit(subject))
    lines = tuple(judged(subject, gate) for gate in asked if _is_open(subject, gate, spoiled))
    reasons = (
        *_comparability(subject),
        *spoiled,
        *smoke(subject, lines),
        *(line for line in lines if not line.passed),
    )
    unseen = (note for gate in asked if (note := unavailable(subject, gate)) is not None)
    return verdict_of(
        subject.name, reasons, held=(line for line in lines if line.passed), notes=(*notes(subject), *unseen)
    )


def verdict_of(
    name: str, reasons: Iterable[Reason], *, held: Iterable[Reason] = (), notes: Iterable[Reason] = ()
) -> Verdict:
    """The verdict that reasons make, by the effect table alone; a reason whose code is only a note decides nothing."""
    found = tuple(reasons)
    deciding = by_precedence(reason for reason in found if effect_of(reason.code) != "note")
    remarks = (*notes, *(reason for reason in found if effect_of(reason.code) == "note"))
    return Verdict(
        candidate=name,
        decision=decided(deciding),
        comparable=all(effect_of(reason.code) != "not_comparable" for reason in deciding),
        reasons=deciding,
        notes=tuple(remarks),
        held=tuple(held),
    )


def _comparability(subject: Subject) -> tuple[Reason, ...]:
    point = -1 if subject.point is None else subject.point
    found = mismatches(subject.profile, subject.state, subject.name, point)
    return tuple(replace(reason, next=plain(reason.code).next) for reason in found)


def _is_open(subject: Subject, gate: Asked, spoiled: tuple[Reason, ...]) -> bool:
    """Whether a gate is still to be judged: not where its figure is already said to be missing or worthless."""
    base = gate.metric.partition(".")[0]
    if base in WITHHELD and subject.metrics is not None and is_clumped(subject.metrics):
        return False
    if base == "quality":
        return all(reason.code != "quality_not_measured" for reason in spoiled)
    return all(reason.code != "missing_measurements" or reason.metric != base for reason in spoiled)
