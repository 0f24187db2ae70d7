"""An engine from its argv to a served model, and its end: stopped, reaped, its memory looked for."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import to_thread
from msgspec.structs import replace

from deploytui.check.cases import CaseCheck
from deploytui.check.devices import neighbours
from deploytui.check.node import read_node
from deploytui.engine.protocol import Engine
from deploytui.plan.asked import longest_request
from deploytui.profile.schema import Candidate
from deploytui.record.engine_events import EngineRead
from deploytui.record.events import PhaseStarted, StatusSet
from deploytui.record.facts import EngineFacts, Failure
from deploytui.run.bench import Bench
from deploytui.run.children import marked, unwrapped
from deploytui.run.containers import appeared, image_name, removed_after
from deploytui.run.context import Context
from deploytui.run.doors import Door, door, get_answer, on_this_host
from deploytui.run.failing import CandidateFailed, EngineDied, last_line, log_lines, too_long
from deploytui.run.freeing import freed
from deploytui.run.keeping import kept
from deploytui.run.listener import Listener, address_beyond, foreign_listener
from deploytui.run.loading import Loaded, Start, load
from deploytui.run.mapping import UNSEEN, gpus_of_server
from deploytui.run.placing import attached, container_of, engine_env, first_facts, planned_launch
from deploytui.run.recorder import now_ns
from deploytui.run.watching import StartWatch

FIND_S = 5.0
"""How long a container that serves may take to be found among the processes of this node [s]."""
GRACE_S = 10.0
"""How long an engine may take to end nicely [s]."""


@asynccontextmanager
async def launched(
    ctx: Context, candidate: Candidate, engine: Engine, check: CaseCheck, folder: Path
) -> AsyncIterator[Bench]:
    """The candidate's engine, started and kept; an endpoint that runs already is only named."""
    if not engine.launches:
        runs = attached(candidate, engine, folder)
        runs.gpu_uuids = await _found_gpus(ctx, runs)
        yield runs
        return
    foreign = await _foreign(ctx, candidate.name, check.gpu_uuids)
    await ctx.ticker.watch(candidate.name, check.gpu_uuids)
    bench: Bench | None = None
    began = now_ns()
    left: list[str] = []
    try:
        async with removed_after(container_of(ctx, candidate), folder) as left:
            # The port is looked for last, so that nobody has long to take it.
            bench, launch = planned_launch(ctx, candidate, engine, check, folder)
            facts = first_facts(bench, check, launch, foreign)
            ctx.recorder.say(EngineRead(at_ns=now_ns(), candidate=candidate.name, engine=facts))
            async with kept(
                launch.argv,
                env=marked(ctx.folder.id, engine_env(ctx, candidate, launch, check.gpu_uuids)),
                session=ctx.folder.id,
                folder=folder,
                grace_s=GRACE_S,
                hurry=ctx.halt.hurry,
                secrets=ctx.recorder.secrets,
            ) as bench.kept:
                try:
                    yield bench
                finally:
                    began = now_ns()
                    ctx.recorder.say(PhaseStarted(at_ns=began, candidate=candidate.name, phase="stopping"))
    finally:
        with anyio.CancelScope(shield=True):
            await freed(ctx, bench, began, left)


async def _foreign(ctx: Context, name: str, gpu_uuids: tuple[str, ...]) -> tuple[str, ...]:
    """Who else is on the candidate's GPUs now, in sentences."""
    if not gpu_uuids:
        return ()
    node = await to_thread.run_sync(read_node)
    found = tuple(neighbours(gpu for gpu in node.gpus if gpu.uuid in gpu_uuids))
    for text in found:
        ctx.note_once("warning", f"{name}: {text}", name)
    return found


async def _found_gpus(ctx: Context, bench: Bench) -> tuple[str, ...]:
    """The GPUs that a server which runs already is seen on; none elsewhere or without GPUs."""
    if not on_this_host(bench.base_url):
        return ()
    node = await to_thread.run_sync(read_node)
    found = await to_thread.run_sync(gpus_of_server, bench.base_url, node) if node.gpus else ()
    if node.gpus and not found and not bench.engine.simulated:
        name = bench.candidate.name
        ctx.note_once("info", f"{name}: {UNSEEN.format(bench.base_url)}", name)
    return tuple(gpu.uuid for gpu in found)


async def serving(ctx: Context, bench: Bench) -> Loaded:
    """Wait until the engine serves; its status, and what it tells of itself, go to the record."""
    name = bench.candidate.name
    launch_s = await _started(ctx, bench)
    async with ctx.phase(name, "loading") as evidence, door(bench.base_url, bench.headers) as calls:
        loaded = await _loaded(ctx, bench, calls)
        bench.served_model, bench.serves = loaded.served_model, True
        evidence["load_s"], evidence["first_token_s"] = loaded.load_s, loaded.first_token_s
        facts = await _told(ctx, bench, calls)
    ctx.recorder.say(EngineRead(at_ns=now_ns(), candidate=name, engine=facts))
    ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=name, status="load_success"))
    await ctx.ticker.loaded()
    if (failure := _too_short(ctx, facts)) is not None:
        raise CandidateFailed(failure)
    return replace(loaded, launch_s=launch_s)


async def _loaded(ctx: Context, bench: Bench, calls: Door) -> Loaded:
    start = Start(
        engine=bench.engine,
        kept=bench.kept,
        wanted=bench.served_model,
        endpoint=ctx.profile.workload.endpoint,
        timeout_s=ctx.profile.timeouts.load,
        died=bench.died,
        note=StartWatch(ctx, bench),
        ready_path=bench.ready_path,
        headers=bench.headers,
        api=bench.candidate.api,
        intruder=lambda: _intruder(bench),
        beyond=lambda: _beyond(bench),
    )
    try:
        with unwrapped():
            async with anyio.create_task_group() as group:
                if bench.container is not None:
                    group.start_soon(_find_container, ctx, bench)
                loaded = await load(calls, start)
                group.cancel_scope.deadline = anyio.current_time() + FIND_S
        return loaded
    except CandidateFailed as error:
        if error.failure.kind == "timeout" and not error.failure.why:
            raise CandidateFailed(replace(error.failure, why=last_line(bench.folder))) from error
        raise


async def _find_container(ctx: Context, bench: Bench) -> None:
    """The engine's memory is not that of the runtime's client, but of the processes in the container."""
    assert bench.container is not None
    bench.container_pid = await appeared(bench.container)
    await ctx.ticker.watch_process(bench.container_pid)


def _intruder(bench: Bench) -> Listener | None:
    """Who answers in the engine's place; not asked of a container, whose processes are not ours to look into."""
    if bench.kept is None or bench.port is None or bench.container is not None:
        return None
    return foreign_listener(bench.port, bench.kept.process.pid)


def _beyond(bench: Bench) -> str | None:
    """The address at which others reach the engine."""
    if bench.kept is None or bench.port is None:
        return None
    return address_beyond(bench.port, bench.kept.process.pid if bench.container is None else None)


async def _told(ctx: Context, bench: Bench, calls: Door) -> EngineFacts:
    """What the running engine tells of itself, at its door and in its log."""
    known = ctx.row(bench.candidate.name).engine or EngineFacts(
        name=bench.engine.name,
        base_url=bench.base_url,
        simulated=bench.engine.simulated,
        gpu_uuids=bench.gpu_uuids,
    )
    answers = {path: await get_answer(calls, path) for path in bench.engine.readback_paths}
    pid = bench.container_pid or (bench.kept.pid if bench.kept else None)
    facts = bench.engine.readback(replace(known, served_model=bench.served_model, pid=pid), answers)
    if bench.kept is not None:
        facts = await to_thread.run_sync(bench.engine.readlog, facts, log_lines(bench.folder))
    if bench.candidate.container is not None:
        facts = replace(facts, container=await image_name(bench.candidate.container))
    return facts


def _too_short(ctx: Context, facts: EngineFacts) -> Failure | None:
    """The failure of an engine whose context, as it tells itself, does not hold the longest request."""
    told, needed = facts.settings.get("max_model_len"), longest_request(ctx.profile.workload, ctx.inputs)
    if not isinstance(told, int) or told >= needed:
        return None
    return Failure(
        kind="request_rejected",
        what=f"The engine's context is {told} tokens, and the longest request of the workload needs {needed}.",
        fix="Serve it with a longer context, or lower workload.prompt_tokens or workload.output_tokens.",
    )


async def _started(ctx: Context, bench: Bench) -> float | None:
    """How long the process took to start [s]; None for an endpoint that runs already."""
    if bench.kept is None:
        return None
    began = time.monotonic()
    async with ctx.phase(bench.candidate.name, "launching") as evidence:
        with anyio.move_on_after(ctx.profile.timeouts.load) as limit:
            await bench.kept.started.wait()
        if limit.cancelled_caught:
            raise CandidateFailed(too_long("The start of the process", "load", ctx.profile.timeouts.load))
        if bench.kept.pid is None:
            raise EngineDied(bench.died)
        evidence["pid"] = bench.kept.pid
        if bench.container is None:
            await ctx.ticker.watch_process(bench.kept.pid)
    return time.monotonic() - began
