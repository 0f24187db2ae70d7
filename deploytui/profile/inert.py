"""What a profile asks for that is not done yet: said before anything runs, never done silently otherwise."""

from collections.abc import Iterator

from deploytui.profile.rules import sweep
from deploytui.profile.schema import Candidate, Closed, Profile, Timeouts


def not_acted_on(profile: Profile) -> tuple[str, ...]:
    """Each key that is read but changes nothing yet, as `key: what is not done`; in the order of the schema."""
    return tuple(dict.fromkeys([*_session_keys(profile), *_candidate_keys(profile)]))


def unrunnable(profile: Profile) -> str | None:
    """Why the workload can't be run as asked, as a sentence with a remedy; None when it can."""
    workload = profile.workload
    if workload.dataset is not None:
        return "workload.dataset: prompts from a file are not sent yet. Use prompt_tokens for synthetic prompts."
    if not isinstance(workload.load, Closed):
        kind = workload.load.__struct_config__.tag
        return f'workload.load: the kind "{kind}" is not run yet. Use {{ kind = "closed", concurrency = 16 }}.'
    if sweep(workload.load) is not None:
        return "workload.load.concurrency: a list is not swept yet. Use one number."
    return None


def _session_keys(profile: Profile) -> Iterator[str]:
    if profile.form != "online":
        yield f'form: "{profile.form}" brings no gates and no load of its own yet'
    if profile.order != "grouped":
        yield "order: candidates are measured one after the other, each in one launch"
    if profile.drift_check:
        yield "drift_check: the first repeat is not measured again at the end"
    if profile.timeouts.prepare != Timeouts().prepare:
        yield "timeouts.prepare: nothing is prepared yet"
    if profile.engine_gate is not None:
        yield "engine_gate: the engine's own state is not watched yet"


def _candidate_keys(profile: Profile) -> Iterator[str]:
    for candidate in profile.candidates:
        for key, text in _one_candidate(candidate):
            yield f"candidates[{candidate.name}].{key}: {text}"


def _one_candidate(candidate: Candidate) -> Iterator[tuple[str, str]]:
    if candidate.revision is not None:
        yield "revision", "models are not fetched from a hub yet"
    if candidate.container is not None:
        yield "container", "engines are not run in containers yet"
    if candidate.form is not None:
        yield "form", "it brings no gates of its own yet"
    if candidate.effort_days is not None:
        yield "effort_days", "it is not shown in a report yet"
