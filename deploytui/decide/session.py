"""The decision on a session, so far or final: pure, from the profile and the folded state."""

from collections.abc import Iterable

from msgspec.structs import replace

from deploytui.decide.effects import effect_of
from deploytui.decide.gates import missing
from deploytui.decide.ranking import objective_of, ranked
from deploytui.decide.subject import baseline_name, subject
from deploytui.decide.title import at_load, full_title, hardware, sentence
from deploytui.decide.verdict import verdict
from deploytui.profile.schema import Profile
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.record.words import DecisionWord

NO_COMPARABLE = "no_comparable_candidate"
"""The one code of a session as a whole: no candidate has a result that can be compared."""

NONE_MEASURED = "none measured"


def decide(profile: Profile, state: SessionState, final: bool = True) -> Decision:
    """The decision; `final` false while the session runs, when unfinished candidates have no verdict yet."""
    finished = [row.name for row in state.candidates.values() if is_finished(state, row, final)]
    unplanned = [row.name for row in profile.candidates if row.name not in state.candidates]
    pending = [name for name in state.candidates if name not in finished] if state.candidates else unplanned
    verdicts = tuple(verdict(subject(profile, state, name)) for name in finished)
    word = _word(verdicts, bool(pending))
    accepted = tuple(subject(profile, state, found.candidate) for found in verdicts if found.decision == "accept")
    objective = objective_of(profile, state)
    ranking = ranked(accepted, objective)
    chosen = next((row for row in accepted if row.name == ranking.recommended), None)
    return Decision(
        decision=word,
        title=full_title(
            f"{sentence(word, ranking, objective, bool(pending))} {at_load(profile.workload)}".rstrip(),
            "" if word == "tune" and pending else hardware(state, chosen),
            final=final,
            simulated=state.simulated,
        ),
        final=final,
        accepted=ranking.order,
        winner=ranking.winner,
        recommended=ranking.recommended,
        objective=objective,
        tie=ranking.tie,
        reasons=() if word == "accept" else _reasons(verdicts, pending),
        not_covered=tuple(dict.fromkeys((*pending, *unplanned))),
        fallback=_fallback(profile, state, verdicts),
        simulated=state.simulated,
        verdicts=verdicts,
    )


def is_finished(state: SessionState, row: CandidateState, final: bool) -> bool:
    """Whether a candidate can be judged; one that was skipped or interrupted can't, and while the session runs all
    its planned steps and its sums must be there.
    """
    if row.status in ("invalid_config", "unsupported", "load_failed") or row.run == "run_failed":
        return True
    if row.status != "load_success" or row.run is None or row.run == "interrupted":
        return False
    if final or row.phase == "done":
        return True
    done = state.finished_steps
    return row.memory is not None and all(s.key in done for s in state.steps if s.key.candidate == row.name)


def _word(verdicts: Iterable[Verdict], pending: bool) -> DecisionWord:
    """Accept if one passes, else tune if one tunes or is still to be measured, else reject."""
    words = {found.decision for found in verdicts}
    if "accept" in words:
        return "accept"
    return "tune" if "tune" in words or pending else "reject"


def _is_comparable(found: Verdict) -> bool:
    return found.comparable and all(effect_of(reason.code) != "no_result" for reason in found.reasons)


def _reasons(verdicts: tuple[Verdict, ...], pending: list[str]) -> tuple[Reason, ...]:
    """Why nothing can be accepted: each candidate's first cause, named, and what is still to be measured."""
    causes = tuple(_named(found.candidate, found.reasons[0]) for found in verdicts if found.reasons)
    waiting = tuple(
        missing("candidate", f"{name}: not measured to its end", fix="Let the session finish, or measure it again.")
        for name in pending
    )
    if pending or any(_is_comparable(found) for found in verdicts):
        return (*causes, *waiting)
    head = Reason(
        code=NO_COMPARABLE,
        text="no candidate has a result that can be compared",
        next="Mend the causes below.",
    )
    return (head, *causes)


def _named(name: str, reason: Reason) -> Reason:
    return replace(reason, text=f"{name}: {reason.text}")


def _fallback(profile: Profile, state: SessionState, verdicts: Iterable[Verdict]) -> str:
    """The baseline where it has a result, since that is what one goes back to."""
    name = baseline_name(profile, state)
    return next(
        (found.candidate for found in verdicts if found.candidate == name and _is_comparable(found)), NONE_MEASURED
    )
