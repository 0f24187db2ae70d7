"""What has to be made of a model before its engine can load it, and what of that is done already."""

import shutil
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from pathlib import Path

from anyio import to_thread
from msgspec import Struct

from deploytui.artifact.embedded import DerivedModel
from deploytui.artifact.prepared import PreparedRecord, found, output_of, preparation_key, scripts_sha256
from deploytui.check.source import Source
from deploytui.engine.adapter import host_script
from deploytui.engine.environments import environment_python
from deploytui.engine.protocol import Engine, PreparationPlan, Probe, Probed
from deploytui.profile.places import user_path
from deploytui.profile.schema import Candidate
from deploytui.profile.secret_names import is_secret_name
from deploytui.record.facts import Failure

VERSIONS = """
import importlib.metadata as known, json, sys
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = known.version(name)
    except known.PackageNotFoundError:
        pass
print(json.dumps({"found": True, "detail": {"versions": versions}}))
"""


class PlannedPreparation(Struct, frozen=True, kw_only=True):
    """One step of a preparation; `record` is there when it was done before."""

    plan: PreparationPlan
    key: str
    scripts: dict[str, str] = {}
    versions: dict[str, str] = {}
    record: PreparedRecord | None = None

    def output(self, cache_dir: Path) -> Path:
        """The model that it makes; of GGUF, whose engines load files, the first file."""
        made = output_of(cache_dir, self.key, self.plan.output)
        if self.plan.format != "gguf" or not made.is_dir():
            return made
        return next(iter(sorted(made.glob("*.gguf"))), made)


def preparation_plans(
    engine: Engine, candidate: Candidate, source_format: str | None, derived: DerivedModel | None
) -> tuple[PreparationPlan, ...] | Failure:
    """All steps from the source to what the engine loads, in order; empty when it loads the source itself."""
    plans: list[PreparationPlan] = []
    if derived is not None:
        made = _derived_plan(candidate, derived)
        if isinstance(made, Failure):
            return made
        plans.append(made)
        source_format = derived.format
    own = _own_plan(candidate) or engine.preparation(candidate, source_format)
    return (*plans, own) if own is not None else tuple(plans)


async def look_up(
    candidate: Candidate,
    plans: tuple[PreparationPlan, ...],
    source: Source,
    cache_dir: Path,
    ask: Callable[[Probe], Awaitable[Probed]],
    gpus: Collection[str] = (),
) -> tuple[PlannedPreparation, ...] | Failure:
    """Each step with its key and, where it is done, its record; the failure when it can't be done here.

    `gpus` are the names of those that are here: an engine is built for one kind of them.
    """
    planned: list[PlannedPreparation] = []
    key = source.key
    assert key is not None, "only a source that is known is prepared"
    for plan in plans:
        versions = await _versions(candidate, plan, ask)
        if isinstance(versions, Failure):
            return versions
        try:
            scripts = await to_thread.run_sync(scripts_sha256, plan.scripts)
        except OSError as error:
            return _no_script(plan, error)
        if plan.format == "tensorrt" and gpus:
            versions = {**versions, "gpu": ", ".join(sorted(gpus))}
        key = preparation_key(key, plan.argv, _environment(candidate, plan), scripts, versions, plan.output)
        record = await to_thread.run_sync(found, cache_dir, key)
        planned.append(PlannedPreparation(plan=plan, key=key, scripts=scripts, versions=versions, record=record))
    return tuple(planned)


def _environment(candidate: Candidate, plan: PreparationPlan) -> dict[str, str]:
    """What the command's environment has on top of ours, without secrets: another token makes no other model."""
    given = {**plan.env, **candidate.env}
    return {name: value for name, value in given.items() if not is_secret_name(name)}


def _derived_plan(candidate: Candidate, derived: DerivedModel) -> PreparationPlan | Failure:
    named = candidate.prepare.python if candidate.prepare else None
    python = user_path(named) if named else environment_python(derived.environment)
    if python is None:
        return Failure(
            kind="not_installed",
            what=f"{derived.name} is made here from {derived.source}, and there is no environment that can do it.",
            fix=f"Run `deploytui setup-engine {derived.environment}`, or name an interpreter with prepare.python.",
        )
    script = host_script(derived.script)
    return PreparationPlan(
        name=f"{derived.format} from GGUF",
        argv=(str(python), script, "{model}", "{out}"),
        env={"HF_HUB_OFFLINE": "1"},
        format=derived.format,
        scripts=(script,),
        packages=derived.packages,
    )


def _own_plan(candidate: Candidate) -> PreparationPlan | None:
    """The user's own command."""
    asked = candidate.prepare
    if asked is None or asked.command is None:
        return None
    format_ = asked.format or candidate.format or ""
    scripts = tuple(_files(asked.command))
    return PreparationPlan(name=f"{format_} by command".strip(), argv=asked.command, format=format_, scripts=scripts)


def _files(command: Sequence[str]) -> Iterator[str]:
    """What the command names that is a file here, such as a script, and last the program itself."""
    program, *words = command
    yield from (word for word in words if _is_file(word))
    if (found := shutil.which(program)) is not None:
        yield found


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


async def _versions(
    candidate: Candidate, plan: PreparationPlan, ask: Callable[[Probe], Awaitable[Probed]]
) -> dict[str, str] | Failure:
    """The versions of the packages that take part, in the interpreter that would do it."""
    if shutil.which(plan.argv[0]) is None:
        return _no_program(candidate, plan)
    if not plan.packages:
        return {}
    probed = await ask(Probe(argv=(plan.argv[0], "-I", "-c", VERSIONS, *plan.packages)))
    told = probed.detail.get("versions", {})
    missing = [name for name in plan.packages if name not in told]
    if not probed.found or missing:
        return _missing(candidate, plan, missing, probed.error)
    return {name: str(version) for name, version in told.items()}


def _no_program(candidate: Candidate, plan: PreparationPlan) -> Failure:
    return Failure(
        kind="not_installed",
        what=f"{candidate.name} needs {plan.name} prepared, and {plan.argv[0]} can't be run.",
        fix="Correct prepare.command, or prepare.python.",
    )


def _missing(candidate: Candidate, plan: PreparationPlan, missing: list[str], why: str) -> Failure:
    return Failure(
        kind="not_installed",
        what=f"{candidate.name} needs {plan.name} prepared, and {plan.argv[0]} lacks {', '.join(missing)}.",
        why=why,
        fix=f"Run `deploytui setup-engine {candidate.engine}`, or name another interpreter with prepare.python.",
    )


def _no_script(plan: PreparationPlan, error: OSError) -> Failure:
    return Failure(
        kind="broken_install",
        what=f"A script that prepares {plan.name} can't be read.",
        why=str(error),
        fix="Install deploytui again.",
    )
