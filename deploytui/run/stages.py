"""The stages of a candidate: checked, fetched, prepared, launched, measured, stopped, its checksums known."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from anyio import to_thread
from msgspec.structs import replace

from deploytui.check.cases import CaseCheck, check_case
from deploytui.check.node import read_node
from deploytui.engine.registry import load_engine
from deploytui.errors import EngineError
from deploytui.profile.schema import Candidate
from deploytui.record.engine_events import ArtifactRead, FitRead
from deploytui.record.events import Progress, RunSet, StatusSet, Summed
from deploytui.record.facts import ColdStart, Failure, MemoryUse
from deploytui.record.measured import Quality
from deploytui.record.planned import PlannedStep
from deploytui.run.bench import Bench, framework_memory
from deploytui.run.context import Context
from deploytui.run.doors import door
from deploytui.run.downloading import download
from deploytui.run.failing import CandidateFailed
from deploytui.run.hashing import Hashing, hashed
from deploytui.run.job import Measure
from deploytui.run.launching import launched, serving
from deploytui.run.loading import Loaded
from deploytui.run.measuring import warm
from deploytui.run.preparing import prepare_model
from deploytui.run.prompting import is_exact_expected, prepare_prompts
from deploytui.run.pulling import pull_image
from deploytui.run.recorder import now_ns


async def run_stages(ctx: Context, candidate: Candidate, steps: Sequence[PlannedStep], measure: Measure) -> None:
    """All stages; CandidateFailed, EngineDied or DeployError says which one did not go well."""
    folder = ctx.folder.candidate_dir(candidate.name)
    await to_thread.run_sync(lambda: folder.mkdir(parents=True, exist_ok=True))
    check, download_s = await _here(ctx, candidate, folder)
    engine = load_engine(candidate.engine)
    async with hashed(ctx, candidate, check) as hashing, AsyncExitStack() as stack:
        bench = await stack.enter_async_context(launched(ctx, candidate, engine, check, folder))
        loaded = await serving(ctx, bench)
        await _measured(ctx, bench, loaded, steps, measure, hashing, download_s)


async def _here(ctx: Context, candidate: Candidate, folder: Path) -> tuple[CaseCheck, float | None]:
    """The check of a candidate whose image and model are here, and how long they were fetched [s].

    After a pull, after a download and after a preparation it is checked again: only now its files can be read.
    """
    check = await _checked(ctx, candidate)
    fetched: list[float] = []
    if check.image is not None:
        fetched.append(await pull_image(ctx, candidate))
        check = await _checked(ctx, candidate)
    if check.download is not None:
        fetched.append(await download(ctx, candidate, check.download))
        check = await _checked(ctx, candidate)
    if check.download is not None or check.image is not None:
        raise CandidateFailed(_moved(candidate))
    if check.preparations:
        await prepare_model(ctx, candidate, load_engine(candidate.engine), check, folder)
        check = await _checked(ctx, candidate) if check.model_path is None else check
        if check.model_path is None:
            raise CandidateFailed(_not_as_made(candidate))
    return check, sum(fetched) if fetched else None


def _not_as_made(candidate: Candidate) -> Failure:
    return Failure(
        kind="prepare_failed",
        what=f"What was prepared for {candidate.name} is not there as it was made.",
        why="Its model changed meanwhile, or the command leaves links to files that are gone.",
        fix="Let it write whole files into the folder {out}, and run it again.",
    )


def _moved(candidate: Candidate) -> Failure:
    return Failure(
        kind="download_failed",
        what=f"What {candidate.name} needs changed at its origin while it was fetched.",
        fix="Run it again, or pin a commit with revision and an image by its digest.",
    )


async def _checked(ctx: Context, candidate: Candidate) -> CaseCheck:
    name = candidate.name
    async with ctx.phase(name, "checking") as evidence:
        check = await check_case(
            ctx.profile,
            candidate,
            ctx.base_dir,
            ctx.cache_dir,
            inputs=ctx.inputs,
            node=await to_thread.run_sync(read_node),
            recorded=ctx.recorded.get(name),
        )
        if check.probed is not None and check.probed.version is not None:
            evidence["version"] = check.probed.version
        if check.fit is not None:
            evidence["fit"] = check.fit.verdict
            ctx.recorder.say(FitRead(at_ns=now_ns(), candidate=name, fit=check.fit))
        if check.artifact is not None:
            ctx.recorder.say(ArtifactRead(at_ns=now_ns(), candidate=name, artifact=check.artifact))
    if check.failure is not None:
        raise CandidateFailed(check.failure)
    for text in check.notes:
        ctx.note_once("info", f"{name}: {text}", name)
    if ctx.row(name).status is None:
        ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=name, status="ready"))
    return check


async def _measured(
    ctx: Context,
    bench: Bench,
    loaded: Loaded,
    steps: Sequence[PlannedStep],
    measure: Measure,
    hashing: Hashing,
    download_s: float | None,
) -> None:
    name = bench.candidate.name
    quality: Quality | None = None
    try:
        async with ctx.phase(name, "warming") as evidence:
            await _prompts(ctx, bench)
            evidence["requests"] = await warm(ctx, bench)
        async with ctx.phase(name, "measuring"), hashing.standing_still():
            await measure(ctx, bench, [step for step in steps if step.key.repeat is not None])
        quality = await _quality(ctx, bench, [step for step in steps if step.key.task is not None])
        ctx.recorder.say(RunSet(at_ns=now_ns(), candidate=name, run="ok"))
    finally:
        framework = await framework_memory(bench)
        ctx.recorder.say(
            Summed(
                at_ns=now_ns(),
                candidate=name,
                memory=_memory(ctx, framework),
                cold_start=_cold_start(ctx, name, loaded, hashing, download_s),
                quality=quality,
            )
        )
    await _recovery(ctx, bench)  # last: what it costs the engine is no part of what was measured


async def _quality(ctx: Context, bench: Bench, tasks: list[PlannedStep]) -> Quality | None:
    if not tasks:
        return None
    from deploytui.run.asking import ask_tasks

    async with ctx.phase(bench.candidate.name, "quality"):
        return await ask_tasks(ctx, bench, tasks)


async def _recovery(ctx: Context, bench: Bench) -> None:
    """What the engine does after what it has to bear, where the profile asks for it."""
    if not ctx.profile.checks.recovery:
        return
    from deploytui.run.recovery import check_recovery

    await check_recovery(ctx, bench)


def _memory(ctx: Context, framework: dict[str, int]) -> MemoryUse:
    told = {key: framework[key] for key in ("peak_allocated_bytes", "peak_reserved_bytes") if key in framework}
    return replace(ctx.ticker.memory(), **told)


def _cold_start(ctx: Context, name: str, loaded: Loaded, hashing: Hashing, download_s: float | None) -> ColdStart:
    """The parts of the start. A preparation counts with the time of its build, also when it was found done: a verdict
    must not turn on what happens to be in a cache.
    """
    builds = [made.seconds for made in ctx.row(name).preparations]
    known = [seconds for seconds in builds if seconds is not None]
    return ColdStart(
        checksum_s=hashing.seconds if hashing.done.is_set() else None,
        download_s=download_s,
        prepare_s=sum(known) if known and len(known) == len(builds) else None,
        launch_s=loaded.launch_s,
        load_s=loaded.load_s,
        first_token_s=loaded.first_token_s,
    )


def _tell(ctx: Context, bench: Bench, text: str) -> None:
    ctx.recorder.say(Progress(at_ns=now_ns(), candidate=bench.candidate.name, done=0, text=text))


async def _prompts(ctx: Context, bench: Bench) -> None:
    """Make the session's prompts with this engine, if it is the first that serves."""
    if ctx.prompts is not None:
        return
    workload, timeout_s = ctx.profile.workload, ctx.profile.timeouts.request
    _tell(ctx, bench, "makes the prompts: asks how many tokens its words are")
    try:
        async with door(bench.base_url, bench.headers) as calls:
            ctx.prompts, ctx.calibration = await prepare_prompts(
                *(calls, ctx.folder, workload, bench.served_model, bench.candidate.name, timeout_s, ctx.inputs),
                bench.candidate.api,
            )
    except EngineError:
        await bench.check_alive(broken=True)
        raise
    ctx.recorder.say(ctx.prompts)
    _tell(ctx, bench, "")
    if not ctx.prompts.exact and is_exact_expected(workload):
        ctx.note("warning", "The prompts could not be made token-exact: see each candidate's prompt_tokens.")
