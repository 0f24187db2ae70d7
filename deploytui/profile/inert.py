"""What a profile asks for that is not done yet: said before anything runs, never done silently otherwise."""

from collections.abc import Iterator

from deploytui.profile.schema import Candidate, Profile


def not_acted_on(profile: Profile) -> tuple[str, ...]:
    """Each key that is read but changes nothing yet, as `key: what is not done`; in the order of the schema."""
    return tuple(dict.fromkeys([*_session_keys(profile), *_candidate_keys(profile)]))


def _session_keys(profile: Profile) -> Iterator[str]:
    if profile.form != "online":
        yield f'form: "{profile.form}" brings no gates and no load of its own yet'
    if profile.order != "grouped":
        yield "order: candidates are measured one after the other, each in one launch"
    if profile.drift_check:
        yield "drift_check: the first repeat is not measured again at the end"
    if profile.engine_gate is not None:
        yield "engine_gate: the engine's own state is not watched yet"


def _candidate_keys(profile: Profile) -> Iterator[str]:
    for candidate in profile.candidates:
        for key, text in _one_candidate(candidate):
            yield f"candidates[{candidate.name}].{key}: {text}"


def _one_candidate(candidate: Candidate) -> Iterator[tuple[str, str]]:
    if candidate.form is not None:
        yield "form", "it brings no gates of its own yet"
    if candidate.effort_days is not None:
        yield "effort_days", "it is not shown in a report yet"
