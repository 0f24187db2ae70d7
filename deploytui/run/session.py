"""The runner: takes a session folder and walks its plan. Journal and exit status are all it leaves."""

import os
import socket
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import anyio
from anyio import to_thread

import deploytui
from deploytui.decide.exit import exit_status
from deploytui.definitions import DEFINITIONS_VERSION
from deploytui.profile.schema import Candidate, Profile
from deploytui.record.events import Decided, EnvironmentRead, Note, SessionEnded, SessionStarted
from deploytui.record.planned import PlannedStep
from deploytui.record.state import SessionState
from deploytui.record.verdict import Decision
from deploytui.run.adoption import adopt_orphans, end_adopted
from deploytui.run.candidate import record_cancelled, run_candidate
from deploytui.run.context import Context
from deploytui.run.control import serve_words
from deploytui.run.halt import Halt
from deploytui.run.job import RUN, Job
from deploytui.run.prepare import Prepared
from deploytui.run.recorder import Listener, Recorder, now_ns
from deploytui.run.signals import obey_signals
from deploytui.run.spares import Spares
from deploytui.run.ticker import Ticker
from deploytui.session.identity import boot_id
from deploytui.session.journal import Journal
from deploytui.session.secrets import secret_values
from deploytui.telemetry.environment import read_environment


class Ended(NamedTuple):
    """How a session went; `unwritten` is its state where the journal could not take all of it, else None."""

    status: int
    unwritten: SessionState | None = None


async def run_session(
    prepared: Prepared, listeners: Sequence[Listener], complain: Callable[[str], None], job: Job = RUN
) -> Ended:
    """Run the whole session."""
    journal, cut = Journal.open(prepared.folder.journal)
    recorder = Recorder(journal, complain, _secrets(prepared.profile))
    recorder.listeners.extend(listeners)
    adopt_orphans()
    halt = Halt()
    ctx = Context(
        profile=prepared.profile,
        folder=prepared.folder,
        base_dir=prepared.base_dir,
        cache_dir=prepared.cache_dir,
        recorder=recorder,
        ticker=Ticker(recorder, prepared.folder),
        spares=Spares(prepared.folder.id, prepared.folder.path / "workers.log"),
        halt=halt,
        inputs=prepared.inputs,
        recorded=prepared.recorded,
        judge=job.judge,
    )
    recorder.say(_started(prepared))
    if cut:
        ctx.note("warning", f"{cut} bytes of an unfinished line were cut off the journal.")
    async with anyio.create_task_group() as group:
        group.start_soon(obey_signals, halt)
        group.start_soon(serve_words, ctx)
        await ctx.spares.keep(1)
        group.start_soon(ctx.ticker.run)
        with halt.session:
            await _walk(ctx, prepared, job)
        with anyio.CancelScope(shield=True):
            await ctx.spares.close()
            status = await _ended(ctx)
        group.cancel_scope.cancel()
    return Ended(status, recorder.state if recorder.trouble is not None else None)


def _secrets(profile: Profile) -> tuple[str, ...]:
    """What is to be written nowhere; what a candidate is called by is no secret, whatever variable holds it, too."""
    keys = [one.api_key_env for one in profile.candidates if one.api_key_env]
    names = [*(one.name for one in profile.candidates), *profile.quality.tasks]
    return tuple(value for value in secret_values(os.environ, keys) if not any(value in name for name in names))


def _started(prepared: Prepared) -> SessionStarted:
    profile = prepared.profile
    return SessionStarted(
        at_ns=now_ns(),
        session=prepared.folder.id,
        name=profile.name,
        schema=profile.schema,
        tool_version=deploytui.__version__,
        definitions=DEFINITIONS_VERSION,
        wall_s=time.time(),
        boot_id=boot_id(),
        hostname=socket.gethostname(),
        pid=os.getpid(),
        base_dir=str(prepared.base_dir),
        profile_sha256=prepared.profile_sha256,
        baseline=profile.baseline,
        simulated=any(candidate.engine == "mock" for candidate in profile.candidates),
    )


async def _walk(ctx: Context, prepared: Prepared, job: Job) -> None:
    """Read the node, then every candidate with its steps."""
    profile = ctx.profile
    planned = job.planned(prepared)
    ctx.recorder.say(planned)
    for text in prepared.notes:
        ctx.recorder.say(Note(at_ns=now_ns(), level="warning", text=text))
    environment = await to_thread.run_sync(read_environment)
    ctx.recorder.say(EnvironmentRead(at_ns=now_ns(), environment=environment))
    with anyio.move_on_after(profile.timeouts.session) as limit:
        for candidate, own in _in_order(profile.candidates, planned.steps):
            await ctx.halt.go.wait()
            await run_candidate(ctx, candidate, own, job.measure)
            await end_adopted(ctx.folder.id)
            await ctx.recorder.sync()
    if limit.cancelled_caught:
        ctx.note("warning", f"The session reached its limit of {profile.timeouts.session:g} s (`timeouts.session`).")


def _in_order(
    candidates: Sequence[Candidate], steps: Sequence[PlannedStep]
) -> list[tuple[Candidate, list[PlannedStep]]]:
    by_name = {candidate.name: candidate for candidate in candidates}
    launches = groupby(steps, key=lambda step: (step.key.candidate, step.key.launch))
    return [(by_name[name], list(own)) for (name, _), own in launches]


async def _ended(ctx: Context) -> int:
    """The final decision and the exit status, in the journal."""
    for name, row in ctx.recorder.state.candidates.items():
        if row.status is None:
            record_cancelled(ctx, name)
    await end_adopted(ctx.folder.id)
    decision = ctx.judge(ctx.profile, ctx.recorder.state, True)
    ctx.recorder.say(Decided(at_ns=now_ns(), decision=decision))
    why = "interrupted" if ctx.halt.interrupted else ""
    ctx.recorder.say(SessionEnded(at_ns=now_ns(), exit_status=_status(ctx, decision), why=why))
    await ctx.recorder.sync()
    return _status(ctx, decision)


def _status(ctx: Context, decision: Decision) -> int:
    broken = ctx.failed or ctx.recorder.trouble is not None
    return exit_status(decision, interrupted=ctx.halt.interrupted, runner_failed=broken)
