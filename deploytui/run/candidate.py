"""One candidate from queued to done. Whatever happens inside, its engine is gone at the end and the record says why."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import anyio
from anyio import to_thread

from deploytui.artifact.embedded import EmbeddedModel
from deploytui.artifact.fetch import fetch
from deploytui.check.cases import CaseCheck, check_case
from deploytui.engine.failures import status_of
from deploytui.engine.registry import load_engine
from deploytui.errors import DeployError, EngineError
from deploytui.profile.schema import Candidate
from deploytui.record.events import ArtifactRead, PhaseStarted, Progress, RunSet, StatusSet, Summed
from deploytui.record.facts import ColdStart, Failure
from deploytui.record.measured import Quality
from deploytui.record.planned import PlannedStep
from deploytui.run.bench import Bench
from deploytui.run.context import Context
from deploytui.run.doors import door
from deploytui.run.failing import CandidateFailed, EngineDied, failed, too_long
from deploytui.run.job import Measure
from deploytui.run.launching import launched, serving
from deploytui.run.loading import Loaded
from deploytui.run.measuring import warm
from deploytui.run.prompting import is_exact_expected, prepare_prompts
from deploytui.run.recorder import now_ns


async def run_candidate(ctx: Context, candidate: Candidate, steps: Sequence[PlannedStep], measure: Measure) -> None:
    """Launch, measure, stop one candidate; its failure is a result, not an exception."""
    name = candidate.name
    with anyio.CancelScope() as scope:
        ctx.halt.current, ctx.halt.scope = name, scope
        if name in ctx.halt.skipped:
            scope.cancel()
        try:
            await _stages(ctx, candidate, steps, measure)
        except CandidateFailed as error:
            record_failure(ctx, name, error.failure)
        except EngineDied as error:
            record_failure(ctx, name, await to_thread.run_sync(error.explain))
        except DeployError as error:
            record_error(ctx, name, failed(error))
        except OSError as error:
            record_error(ctx, name, _disk(error))
        except anyio.get_cancelled_exc_class():
            record_cancelled(ctx, name)
            raise
        finally:
            ctx.halt.current = ctx.halt.scope = None
            ctx.recorder.say(PhaseStarted(at_ns=now_ns(), candidate=name, phase="done"))
            ctx.decide_so_far()


def record_failure(ctx: Context, name: str, failure: Failure) -> None:
    """A failure before the engine served is a status, one after it is a run."""
    if ctx.row(name).status == "load_success":
        oom = failure.kind == "oom"
        ctx.recorder.say(RunSet(at_ns=now_ns(), candidate=name, run="run_failed", failure=failure, oom=oom))
    else:
        ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=name, status=status_of(failure.kind), failure=failure))


def record_error(ctx: Context, name: str, failure: Failure) -> None:
    """What is wrong with our side, such as a full disk, says nothing about the candidate: it is not measured."""
    if failure.kind != "unknown":
        record_failure(ctx, name, failure)
        return
    ctx.failed = True
    if ctx.row(name).status == "load_success":
        ctx.recorder.say(RunSet(at_ns=now_ns(), candidate=name, run="interrupted", failure=failure))
    else:
        ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=name, status="cancelled", failure=failure))


def record_cancelled(ctx: Context, name: str) -> None:
    """Skipped or interrupted, by the user's wish; finished results keep their state."""
    row = ctx.row(name)
    failure = _by_wish(skipped=name in ctx.halt.skipped)
    if row.status == "load_success":
        if row.run is None:
            ctx.recorder.say(RunSet(at_ns=now_ns(), candidate=name, run="interrupted", failure=failure))
    elif row.status is None or row.status == "ready":
        ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=name, status="cancelled", failure=failure))


def _disk(error: OSError) -> Failure:
    """A file of the session could not be made or read: a full disk, or a folder that was taken away."""
    return Failure(
        kind="unknown",
        what="A file of the session can't be used.",
        why=str(error),
        fix="Make room on the disk of the state folder, or name another one with --state-dir.",
    )


def _by_wish(*, skipped: bool) -> Failure:
    fix = "Run the profile again to measure it."
    if skipped:
        return Failure(kind="skipped", what="Skipped.", fix=fix)
    return Failure(kind="interrupted", what="Interrupted before it was through.", fix=fix)


async def _stages(ctx: Context, candidate: Candidate, steps: Sequence[PlannedStep], measure: Measure) -> None:
    folder = ctx.folder.candidate_dir(candidate.name)
    await to_thread.run_sync(lambda: folder.mkdir(parents=True, exist_ok=True))
    async with ctx.phase(candidate.name, "checking"):
        check = await _checked(ctx, candidate)
    engine = load_engine(candidate.engine)
    download_s = None
    if check.download is not None:
        download_s = await _download(ctx, candidate, check.download)
        check = await _checked(ctx, candidate)
    async with AsyncExitStack() as stack:
        bench = await stack.enter_async_context(launched(ctx, candidate, engine, check, folder))
        loaded = await serving(ctx, bench)
        await _measured(ctx, bench, loaded, steps, measure, download_s)


async def _checked(ctx: Context, candidate: Candidate) -> CaseCheck:
    check = await check_case(ctx.profile, candidate, ctx.base_dir, ctx.cache_dir, inputs=ctx.inputs)
    if check.failure is not None:
        raise CandidateFailed(check.failure)
    for text in check.notes:
        ctx.note("info", f"{candidate.name}: {text}", candidate.name)
    if check.artifact is not None:
        ctx.recorder.say(ArtifactRead(at_ns=now_ns(), candidate=candidate.name, artifact=check.artifact))
    if ctx.row(candidate.name).status is None:
        ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=candidate.name, status="ready"))
    return check


async def _download(ctx: Context, candidate: Candidate, model: EmbeddedModel) -> float:
    """Fetch an embedded model that is not in the cache; how long that took [s]."""
    began = time.monotonic()

    def progress(done: int, whole: int | None) -> None:
        ctx.recorder.say(
            Progress(at_ns=now_ns(), candidate=candidate.name, done=done, total=whole, unit="B", text=model.requirement)
        )

    async with ctx.phase(candidate.name, "downloading"):
        with anyio.move_on_after(ctx.profile.timeouts.download) as limit:
            await fetch(model, ctx.cache_dir, progress)
        if limit.cancelled_caught:
            raise CandidateFailed(too_long("The download", "download", ctx.profile.timeouts.download))
    return time.monotonic() - began


async def _measured(
    ctx: Context,
    bench: Bench,
    loaded: Loaded,
    steps: Sequence[PlannedStep],
    measure: Measure,
    download_s: float | None,
) -> None:
    name = bench.candidate.name
    quality: Quality | None = None
    try:
        async with ctx.phase(name, "warming") as evidence:
            await _prompts(ctx, bench)
            evidence["requests"] = await warm(ctx, bench)
        async with ctx.phase(name, "measuring"):
            await measure(ctx, bench, [step for step in steps if step.key.repeat is not None])
        if tasks := [step for step in steps if step.key.task is not None]:
            from deploytui.run.asking import ask_tasks

            async with ctx.phase(name, "quality"):
                quality = await ask_tasks(ctx, bench, tasks)
        ctx.recorder.say(RunSet(at_ns=now_ns(), candidate=name, run="ok"))
    finally:
        ctx.recorder.say(
            Summed(
                at_ns=now_ns(),
                candidate=name,
                memory=ctx.ticker.memory(),
                cold_start=_cold_start(loaded, download_s),
                quality=quality,
            )
        )


def _cold_start(loaded: Loaded, download_s: float | None) -> ColdStart:
    return ColdStart(
        download_s=download_s,
        launch_s=loaded.launch_s,
        load_s=loaded.load_s,
        first_token_s=loaded.first_token_s,
    )


async def _prompts(ctx: Context, bench: Bench) -> None:
    """Make the session's prompts with this engine, if it is the first that serves."""
    if ctx.prompts is not None:
        return
    workload, timeout_s = ctx.profile.workload, ctx.profile.timeouts.request
    try:
        async with door(bench.base_url, bench.headers) as calls:
            ctx.prompts, ctx.calibration = await prepare_prompts(
                calls, ctx.folder, workload, bench.served_model, bench.candidate.name, timeout_s, ctx.inputs
            )
    except EngineError:
        await bench.check_alive(broken=True)
        raise
    ctx.recorder.say(ctx.prompts)
    if not ctx.prompts.exact and is_exact_expected(workload):
        ctx.note("warning", "The prompts could not be made token-exact: see each candidate's prompt_tokens.")
