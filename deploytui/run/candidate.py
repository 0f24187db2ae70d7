"""One candidate from queued to done. Whatever happens inside, its engine is gone at the end and the record says why."""

import traceback
from collections.abc import Sequence

import anyio
from anyio import to_thread

from deploytui.engine.failures import status_of
from deploytui.errors import DeployError
from deploytui.profile.schema import Candidate
from deploytui.record.events import PhaseStarted, RunSet, StatusSet
from deploytui.record.facts import Failure
from deploytui.record.planned import PlannedStep
from deploytui.run.context import Context
from deploytui.run.failing import CandidateFailed, EngineDied, failed
from deploytui.run.job import Measure
from deploytui.run.recorder import now_ns
from deploytui.run.stages import run_stages
from deploytui.session.speech import tell


async def run_candidate(ctx: Context, candidate: Candidate, steps: Sequence[PlannedStep], measure: Measure) -> None:
    """Launch, measure, stop one candidate; its failure is a result, not an exception."""
    name = candidate.name
    with anyio.CancelScope() as scope:
        ctx.halt.current, ctx.halt.scope = name, scope
        if name in ctx.halt.skipped:
            scope.cancel()
        try:
            await _understood(ctx, candidate, steps, measure)
        except CandidateFailed as error:
            record_failure(ctx, name, error.failure)
        except DeployError as error:
            record_error(ctx, name, failed(error))
        except OSError as error:
            record_error(ctx, name, _disk(error))
        except anyio.get_cancelled_exc_class():
            record_cancelled(ctx, name)
            raise
        except Exception as error:  # noqa: BLE001 - such as an adapter that raises: the other candidates are measured
            record_error(ctx, name, _unexpected(error))
        finally:
            ctx.halt.current = ctx.halt.scope = None
            ctx.recorder.say(PhaseStarted(at_ns=now_ns(), candidate=name, phase="done"))
            ctx.decide_so_far()


async def _understood(ctx: Context, candidate: Candidate, steps: Sequence[PlannedStep], measure: Measure) -> None:
    """All stages; an engine that died is a failure with its cause, also when the user does not wait for that."""
    try:
        await run_stages(ctx, candidate, steps, measure)
    except EngineDied as error:
        with anyio.CancelScope(shield=True):
            failure = await to_thread.run_sync(error.explain)
        raise CandidateFailed(failure) from error


def record_failure(ctx: Context, name: str, failure: Failure) -> None:
    """A failure before the engine served is a status, one after it is a run."""
    if ctx.row(name).status == "load_success":
        oom = failure.kind == "oom"
        ctx.recorder.say(RunSet(at_ns=now_ns(), candidate=name, run="run_failed", failure=failure, oom=oom))
    else:
        ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=name, status=status_of(failure.kind), failure=failure))


def record_error(ctx: Context, name: str, failure: Failure) -> None:
    """What is wrong with our side, such as a full disk, says nothing about the candidate: it is not measured.

    What was measured to its end stays.
    """
    if failure.kind != "unknown":
        record_failure(ctx, name, failure)
        return
    ctx.failed = True
    row = ctx.row(name)
    if row.run == "ok":
        told = " ".join(part for part in (failure.what, failure.why, failure.fix) if part)
        ctx.note("error", f"{name}: {told}", name)
    elif row.status == "load_success":
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


def _unexpected(error: Exception) -> Failure:
    """What nobody expected; where it came from is told once, to whoever mends it."""
    tell("".join(traceback.format_exception(error)))
    return Failure(
        kind="unknown",
        what="deploytui, or the adapter of this engine, has a defect.",
        why="\n".join(line.strip() for line in traceback.format_exception_only(error)),
        fix="Report it with the traceback above; the other candidates are measured.",
    )


def _by_wish(*, skipped: bool) -> Failure:
    fix = "Run the profile again to measure it."
    if skipped:
        return Failure(kind="skipped", what="Skipped.", fix=fix)
    return Failure(kind="interrupted", what="Interrupted before it was through.", fix=fix)
