"""Whether one candidate can be launched here, and if not, why: configuration, installation, model, preparation, place.

Starts no engine and fetches no model; a hub may be asked what it has.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from deploytui.artifact.embedded import EmbeddedModel
from deploytui.artifact.facts import ModelFacts
from deploytui.artifact.hub import HubAnswer, HubDownload, HubRequest, ask_hub
from deploytui.artifact.model import artifact_of, read_model
from deploytui.check.allowed import not_allowed
from deploytui.check.case_notes import model_notes, step_notes, too_short
from deploytui.check.expected import Sums, sums_of
from deploytui.check.hardware import Needs, hardware
from deploytui.check.images import missing_image, pulled_first
from deploytui.check.node import Node
from deploytui.check.preparing import PlannedPreparation, look_up, preparation_plans
from deploytui.check.probe import run_probe
from deploytui.check.source import Source, artifact_from, from_hub, locate, unreadable
from deploytui.check.support import load_failure, source_failure
from deploytui.check.told import told_notes, with_operators
from deploytui.engine.container import container_probe, runtime_failure
from deploytui.engine.failures import status_of
from deploytui.engine.protocol import Engine, Probe, Probed
from deploytui.engine.registry import load_engine
from deploytui.engine.version import parsed_lock
from deploytui.errors import ProfileError
from deploytui.plan.asked import longest_request
from deploytui.plan.forecast import engine_slots
from deploytui.plan.inputs import NO_INPUTS, Inputs
from deploytui.profile.schema import Candidate, Profile
from deploytui.record.facts import Artifact, Failure, Fit
from deploytui.record.words import Status

Ask = Callable[[Probe], Awaitable[Probed]]
"""How a probe is run."""
AskHub = Callable[[HubRequest, Path], Awaitable[HubAnswer]]
"""How a hub is asked."""


class CaseCheck(Struct, frozen=True, kw_only=True):
    """What was found out about a candidate before its launch; `failure` None when it is ready."""

    name: str
    engine: str
    status: Status
    failure: Failure | None = None
    probed: Probed | None = None
    """None when nothing was asked, or nothing needs to be installed."""
    artifact: Artifact | None = None
    """None without a local model; its path is None until it is fetched and prepared."""
    download: EmbeddedModel | HubDownload | None = None
    """What has to be fetched first; None when nothing has."""
    image: str | None = None
    """What a container runtime has to pull first, before it can be asked what is in it; None when nothing has."""
    preparations: tuple[PlannedPreparation, ...] = ()
    """What has to be made of the model, in order; those that are done have their record."""
    source: str | None = None
    """Path of what the preparations begin with; None until it is fetched, or without any."""
    facts: ModelFacts | None = None
    """Everything read from the model's files; None without local ones."""
    gpu_uuids: tuple[str, ...] = ()
    """The GPUs it would get."""
    fit: Fit | None = None
    """Whether it will fit there; None where that was not asked."""
    expected: dict[str, str] = {}
    """sha256 by file, as the profile, its results or the model's origin name it."""
    to_hash: bool = False
    """Whether checksums are asked for that are not known yet."""
    notes: tuple[str, ...] = ()

    @property
    def model_path(self) -> str | None:
        """The model as the engine gets it; None when there is none or it is not here yet."""
        return self.artifact.path if self.artifact else None


class Asked(Struct, frozen=True, kw_only=True):
    """A candidate with all that its check goes by."""

    profile: Profile
    candidate: Candidate
    engine: Engine
    cache_dir: Path
    ask: Ask
    inputs: Inputs | None
    node: Node | None
    recorded: Mapping[str, str]


async def check_case(
    profile: Profile,
    candidate: Candidate,
    base_dir: Path,
    cache_dir: Path,
    ask: Ask = run_probe,
    inputs: Inputs | None = NO_INPUTS,
    node: Node | None = None,
    hub: AskHub = ask_hub,
    recorded: Mapping[str, str] | None = None,
) -> CaseCheck:
    """Check one candidate of a profile; nothing that a profile can ask for raises.

    Without `inputs`, the files that the workload names, its lengths are not held against contexts. Without `node`,
    nothing is placed on a device. `recorded` are checksums that saved results hold of its files.
    """
    needed = longest_request(profile.workload, inputs) if inputs is not None else 0
    try:
        engine = load_engine(candidate.engine)
        parsed_lock(candidate.engine_version or "==0")
    except ProfileError as error:
        wrong = Failure(kind="invalid_config", what=error.what, why=error.why, fix=error.fix)
        return _refused(candidate, wrong)
    if failure := engine.objection(candidate) or not_allowed(engine, candidate) or too_short(candidate, needed):
        return _refused(candidate, failure)
    asked = Asked(
        profile=profile,
        candidate=candidate,
        engine=engine,
        cache_dir=cache_dir,
        ask=ask,
        inputs=inputs,
        node=node,
        recorded=recorded or {},
    )
    image, failure = await missing_image(candidate, ask)
    probed, failure = (None, failure) if image or failure else await _installation(engine, candidate, ask)
    # An engine that is not there comes first: what its models are called is for that engine to say.
    if failure is not None:
        return _refused(candidate, failure, probed)
    source = await _source(asked, base_dir, hub)
    if source.failure is not None:
        return _refused(candidate, source.failure, probed)
    case = await _with_model(asked, source, probed)
    return case if image is None else replace(case, image=image, notes=(*case.notes, pulled_first(image)))


async def _source(asked: Asked, base_dir: Path, hub: AskHub) -> Source:
    if not asked.engine.launches or asked.engine.simulated:
        return Source()
    source = await to_thread.run_sync(locate, asked.engine, asked.candidate, base_dir, asked.cache_dir)
    if source.request is None:
        return source
    return from_hub(await hub(source.request, asked.cache_dir))


async def _with_model(asked: Asked, source: Source, probed: Probed | None) -> CaseCheck:
    """The check of a candidate whose engine is there and whose model was found."""
    candidate, engine = asked.candidate, asked.engine
    facts = await to_thread.run_sync(read_model, source.path) if source.path is not None else None
    if source.path is not None and (failure := unreadable(source.path)):
        return _refused(candidate, failure, probed, artifact_from(source, facts))
    steps: tuple[PlannedPreparation, ...] = ()
    if source.path is not None or source.download is not None:
        found = await _steps(asked, source, facts)
        if isinstance(found, Failure):
            return _refused(candidate, found, probed, artifact_from(source, facts))
        steps = found
    if steps:
        return await _prepared(asked, source, facts, probed, steps)
    told = await with_operators(asked.ask, candidate, facts, probed)
    failure = load_failure(engine, candidate, facts, told) if facts is not None else None
    artifact = artifact_from(source, facts)
    if failure is not None:
        return _refused(candidate, failure, probed, artifact)
    case = CaseCheck(
        name=candidate.name, engine=engine.name, status="ready", probed=probed, artifact=artifact, facts=facts
    )
    case = replace(case, download=source.download, notes=tuple(_told(asked, source, artifact, facts, told)))
    if source.path is None:
        return _placed(asked, case)
    sums = await sums_of(asked.profile, candidate, source.path, asked.recorded, source.declared, asked.cache_dir)
    return _placed(asked, _with_sums(candidate, case, sums))


async def _steps(asked: Asked, source: Source, facts: ModelFacts | None) -> tuple[PlannedPreparation, ...] | Failure:
    kind = facts.format if facts is not None else source.format
    plans = preparation_plans(asked.engine, asked.candidate, kind, source.derived)
    if isinstance(plans, Failure):
        return plans
    if not plans:
        return ()
    if facts is not None and (failure := source_failure(asked.candidate, facts)):
        return failure
    gpus = {gpu.name for gpu in asked.node.gpus} if asked.node is not None else ()
    return await look_up(asked.candidate, plans, source, asked.cache_dir, asked.ask, gpus)


async def _prepared(
    asked: Asked,
    source: Source,
    facts: ModelFacts | None,
    probed: Probed | None,
    steps: tuple[PlannedPreparation, ...],
) -> CaseCheck:
    """The check of a candidate whose model is made from another one: of what was made, where it is done."""
    candidate = asked.candidate
    case = CaseCheck(
        name=candidate.name,
        engine=asked.engine.name,
        status="ready",
        probed=probed,
        download=source.download,
        preparations=steps,
        source=str(source.path) if source.path is not None else None,
    )
    if source.path is not None and candidate.sha256:
        named = await sums_of(asked.profile, candidate, source.path, {}, source.declared, asked.cache_dir)
        if named.failure is not None:
            return _refused(candidate, named.failure, probed, artifact_from(source, facts))
    last = steps[-1]
    if any(step.record is None for step in steps) or last.record is None:
        artifact = Artifact(format=last.plan.format or None, revision=source.revision)
        notes = (*_told(asked, source, artifact, facts), *step_notes(steps))
        return replace(case, artifact=artifact, notes=notes)
    return await _made(asked, source, case, last, last.record.output_sha256)


async def _made(
    asked: Asked, source: Source, case: CaseCheck, last: PlannedPreparation, declared: Mapping[str, str]
) -> CaseCheck:
    """The check of what was made, which is held to the checksums it had when it was made."""
    candidate, probed = asked.candidate, case.probed
    path = await to_thread.run_sync(last.output, asked.cache_dir)
    made = await to_thread.run_sync(read_model, path)
    artifact = replace(artifact_of(made), revision=source.revision)
    told = await with_operators(asked.ask, candidate, made, probed)
    if (failure := load_failure(asked.engine, candidate, made, told)) is not None:
        return _refused(candidate, failure, probed, artifact)
    case = replace(case, artifact=artifact, facts=made, notes=tuple(_told(asked, source, artifact, made, told)))
    # What the profile says of checksums is about the source.
    sums = await sums_of(asked.profile, replace(candidate, sha256={}), path, {}, declared, asked.cache_dir)
    return _placed(asked, _with_sums(candidate, case, sums))


def _told(
    asked: Asked, source: Source, artifact: Artifact | None, facts: ModelFacts | None, told: Probed | None = None
) -> Iterator[str]:
    needed = _needs(asked.profile, asked.inputs).context_tokens
    yield from model_notes(asked.candidate, source, artifact, facts, needed)
    yield from told_notes(asked.engine, asked.candidate, facts, told)


def _with_sums(candidate: Candidate, case: CaseCheck, sums: Sums) -> CaseCheck:
    """The check with what is known of its checksums, which may refuse it."""
    assert case.artifact is not None
    artifact = replace(case.artifact, sha256=sums.known, checksum=sums.checksum)
    if sums.failure is not None:
        return _refused(candidate, sums.failure, case.probed, artifact)
    return replace(
        case, artifact=artifact, expected=sums.expected, to_hash=sums.to_hash, notes=(*case.notes, *sums.notes)
    )


def _placed(asked: Asked, case: CaseCheck) -> CaseCheck:
    if asked.node is None or case.failure is not None or not asked.engine.launches:
        return case
    needs = _needs(asked.profile, asked.inputs)
    place = hardware(asked.engine, asked.candidate, case.facts, asked.node, needs)
    if place.failure is not None:
        return replace(_refused(asked.candidate, place.failure, case.probed, case.artifact), fit=place.fit)
    return replace(case, gpu_uuids=place.gpu_uuids, fit=place.fit, notes=(*case.notes, *place.notes))


def _needs(profile: Profile, inputs: Inputs | None) -> Needs:
    tasks = profile.quality.concurrency if profile.quality.tasks else 1
    return Needs(
        context_tokens=longest_request(profile.workload, inputs) if inputs is not None else 0,
        concurrency=max(engine_slots(profile.workload), tasks),
    )


async def _installation(engine: Engine, candidate: Candidate, ask: Ask) -> tuple[Probed | None, Failure | None]:
    if failure := runtime_failure(candidate):
        return None, failure
    probe = engine.probe(candidate)
    if probe is None:
        return None, None
    probed = await ask(container_probe(probe, candidate.container) if candidate.container else probe)
    return probed, engine.judge(candidate, probed)


def _refused(
    candidate: Candidate, failure: Failure, probed: Probed | None = None, artifact: Artifact | None = None
) -> CaseCheck:
    return CaseCheck(
        name=candidate.name,
        engine=candidate.engine,
        status=status_of(failure.kind),
        failure=failure,
        probed=probed,
        artifact=artifact,
    )
