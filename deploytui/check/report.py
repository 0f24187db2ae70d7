"""What a profile would do, before anything of it runs: cases, one-factor audit, samples, keys without effect."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from deploytui.artifact.hub import HubAnswer, HubRequest, ask_hub
from deploytui.artifact.manifest import recorded_sha256
from deploytui.check.cases import Ask, AskHub, CaseCheck, check_case
from deploytui.check.inputs import read_inputs
from deploytui.check.node import read_node
from deploytui.check.probe import run_probe
from deploytui.engine.protocol import Probe, Probed
from deploytui.errors import ProfileError
from deploytui.plan.audit import confounded
from deploytui.plan.forecast import forecast
from deploytui.plan.inputs import Inputs, input_notes
from deploytui.plan.samples import sample_faults, sample_needs
from deploytui.profile.inert import not_acted_on
from deploytui.profile.schema import Candidate, Gates, Profile
from deploytui.quality.tasks import load_task

NO_BASELINE = "No baseline is named, so no candidate is held against another."


class CheckReport(Struct, frozen=True, kw_only=True):
    """Everything `check` found; texts are sentences."""

    profile: str
    cases: tuple[CaseCheck, ...]
    unrunnable: str | None
    """Why the workload can't be run as asked; None when it can."""
    load: tuple[str, ...] = ()
    """What a run will send to each candidate, and for how long; what to know of the files it is made of."""
    tasks: tuple[str, ...] = ()
    """What is wrong with the files of the quality tasks, a line each."""
    audit: tuple[str, ...]
    """One line for each candidate that differs from the baseline in more than one factor."""
    samples: tuple[str, ...]
    """One line for each percentile that decides something."""
    evidence: tuple[str, ...]
    """What will keep the decision at `tune`, with its code."""
    not_acted_on: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """Whether a run would measure at least one candidate."""
        return self.unrunnable is None and not self.tasks and any(case.status == "ready" for case in self.cases)


async def check_profile(profile: Profile, base_dir: Path, cache_dir: Path) -> CheckReport:
    """Check a whole profile; starts no engine and downloads nothing."""
    inputs, unrunnable = _inputs(profile, base_dir)
    check = partial(
        check_case,
        profile,
        base_dir=base_dir,
        cache_dir=cache_dir,
        ask=asked_once(run_probe),
        inputs=inputs,
        node=await to_thread.run_sync(read_node),
        hub=hub_asked_once(ask_hub),
    )
    cases = [
        await check(candidate, recorded=recorded_sha256(profile.results, candidate.name))
        for candidate in profile.candidates
    ]
    return CheckReport(
        profile=profile.name,
        cases=tuple(cases),
        unrunnable=unrunnable,
        load=(*forecast(profile.workload, inputs), *input_notes(profile.workload, inputs)) if inputs else (),
        tasks=tuple(_task_faults(profile, base_dir)),
        audit=tuple([line async for line in _audit(profile, check)]),
        samples=tuple(need.text for need in sample_needs(profile)),
        evidence=tuple(_evidence(profile)),
        not_acted_on=not_acted_on(profile),
    )


def asked_once(ask: Ask) -> Ask:
    """The same, but a probe that was run before is answered from memory; several at once wait for one another."""
    told: dict[bytes, Probed] = {}
    turn = anyio.Lock()

    async def once(probe: Probe) -> Probed:
        key = msgspec.json.encode(probe, order="sorted")
        async with turn:
            if key not in told:
                told[key] = await ask(probe)
            return told[key]

    return once


def hub_asked_once(ask: AskHub) -> AskHub:
    """The same for a hub: several candidates of one model ask once."""
    told: dict[bytes, HubAnswer] = {}

    async def once(request: HubRequest, cache_dir: Path) -> HubAnswer:
        key = msgspec.json.encode([request, str(cache_dir)], order="deterministic")
        if key not in told:
            told[key] = await ask(request, cache_dir)
        return told[key]

    return once


def _inputs(profile: Profile, base_dir: Path) -> tuple[Inputs | None, str | None]:
    """The workload's files, or why they won't do."""
    try:
        return read_inputs(profile, base_dir), None
    except ProfileError as error:
        return None, " ".join(error.text().splitlines())


def _task_faults(profile: Profile, base_dir: Path) -> Iterator[str]:
    for name in profile.quality.tasks:
        try:
            load_task(name, base_dir)
        except ProfileError as error:
            yield " ".join(error.text().splitlines())


async def _audit(profile: Profile, check: Callable[[Candidate], Awaitable[CaseCheck]]) -> AsyncIterator[str]:
    if profile.baseline is None:
        yield NO_BASELINE
    for found in confounded(profile):
        steps = [step for step in found.steps if (await check(step.candidate)).status == "ready"]
        yield msgspec.structs.replace(found, steps=tuple(steps)).text


def _evidence(profile: Profile) -> Iterator[str]:
    """Why the decision can't be more than `tune`, whatever is measured."""
    if profile.gates == Gates():
        yield "nothing_asked: no gate is set, so nothing can be accepted. Add [gates]."
    if not profile.quality.tasks:
        yield 'quality_not_measured: no quality task is set. Add [quality] with tasks = ["builtin:basic"].'
    for fault in sample_faults(profile):
        yield f"{fault.code}: {fault.text}"
