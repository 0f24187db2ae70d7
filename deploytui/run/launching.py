"""An engine from its argv to a served model, and its end: stopped, reaped, its memory looked for."""

import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from msgspec.structs import replace

from deploytui.check.cases import CaseCheck
from deploytui.engine.openai import api_key
from deploytui.engine.protocol import Engine, Launch, Place
from deploytui.plan.asked import longest_request, room_needed
from deploytui.plan.forecast import engine_slots
from deploytui.plan.prompts import TEMPLATE_ROOM
from deploytui.profile.schema import Candidate
from deploytui.record.events import EngineRead, Freed, PhaseEnded, PhaseStarted, Progress, StatusSet
from deploytui.record.facts import EngineFacts, Failure
from deploytui.run.bench import Bench
from deploytui.run.children import marked
from deploytui.run.context import Context
from deploytui.run.doors import door, get_json
from deploytui.run.failing import CandidateFailed, EngineDied, last_line, too_long
from deploytui.run.gpus import chosen_gpus, environment
from deploytui.run.keeping import kept
from deploytui.run.loading import Loaded, load
from deploytui.run.recorder import now_ns
from deploytui.run.ticker import LEFT_BYTES
from deploytui.telemetry.nvml import visible_uuids
from deploytui.units import NS, gib

GRACE_S = 10.0
"""How long an engine may take to end nicely [s]."""
NOTE_S = 1.0
"""Between two progress events while an engine loads [s]."""


@asynccontextmanager
async def launched(
    ctx: Context, candidate: Candidate, engine: Engine, check: CaseCheck, folder: Path
) -> AsyncIterator[Bench]:
    """The candidate's engine, started and kept; an endpoint that runs already is only named."""
    if not engine.launches:
        yield _attached(candidate, engine, folder)
        return
    bench, launch = _planned_launch(ctx, candidate, engine, check, folder)
    env = marked(ctx.folder.id, {**environment(bench.gpu_uuids), **launch.env, **candidate.env})
    ctx.recorder.say(EngineRead(at_ns=now_ns(), candidate=candidate.name, engine=_facts(bench, check, launch)))
    began = now_ns()
    await ctx.ticker.watch(candidate.name, bench.gpu_uuids)
    try:
        async with kept(
            launch.argv,
            env=env,
            session=ctx.folder.id,
            folder=folder,
            grace_s=GRACE_S,
            hurry=ctx.halt.hurry,
        ) as bench.kept:
            try:
                yield bench
            finally:
                began = now_ns()
                ctx.recorder.say(PhaseStarted(at_ns=began, candidate=candidate.name, phase="stopping"))
    finally:
        with anyio.CancelScope(shield=True):
            await _freed(ctx, bench, began)


def _attached(candidate: Candidate, engine: Engine, folder: Path) -> Bench:
    door_only = engine.launch(candidate, Place(port=0, model_path=None, concurrency=0, context_tokens=0))
    bench = Bench(candidate, engine, door_only.base_url, folder, served_model=door_only.served_model)
    if (key := api_key(candidate)) is not None:
        bench.headers["Authorization"] = f"Bearer {key}"
    return bench


def _planned_launch(
    ctx: Context, candidate: Candidate, engine: Engine, check: CaseCheck, folder: Path
) -> tuple[Bench, Launch]:
    key = secrets.token_hex(24)
    gpu_uuids = chosen_gpus(candidate, _usable(ctx))
    place = Place(
        port=_free_port(),
        model_path=check.model_path,
        concurrency=max(
            engine_slots(ctx.profile.workload), ctx.profile.quality.concurrency if ctx.profile.quality.tasks else 1
        ),
        context_tokens=_context(ctx),
        gpu_uuids=gpu_uuids,
        api_key=key,
    )
    launch = engine.launch(candidate, place)
    bench = Bench(candidate, engine, launch.base_url, folder, {"Authorization": f"Bearer {key}"}, gpu_uuids=gpu_uuids)
    bench.served_model = launch.served_model
    return bench, launch


def _usable(ctx: Context) -> tuple[str, ...]:
    found = ctx.recorder.state.environment
    return visible_uuids(os.environ.get("CUDA_VISIBLE_DEVICES"), found.gpus) if found else ()


def _context(ctx: Context) -> int:
    """Tokens of the longest request: the workload's, or a quality item's answer with room for its question."""
    quality = ctx.profile.quality
    asked = room_needed(ctx.profile.workload, ctx.inputs)
    return max(asked, quality.max_tokens + TEMPLATE_ROOM if quality.tasks else 0)


def _free_port() -> int:
    """A loopback port nobody listens on now; an engine that finds it taken later says so itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _facts(bench: Bench, check: CaseCheck, launch: Launch) -> EngineFacts:
    return EngineFacts(
        name=bench.engine.name,
        version=check.probed.version if check.probed else None,
        argv=launch.shown_argv or launch.argv,
        base_url=launch.base_url,
        served_model=launch.served_model,
        device=bench.candidate.device,
        simulated=bench.engine.simulated,
    )


async def serving(ctx: Context, bench: Bench) -> Loaded:
    """Wait until the engine serves; its status, and what it tells of itself, go to the record."""
    name = bench.candidate.name
    launch_s = await _started(ctx, bench)
    async with ctx.phase(name, "loading") as evidence, door(bench.base_url, bench.headers) as calls:
        loaded = await load(
            calls,
            bench.engine,
            bench.kept,
            wanted=bench.served_model,
            endpoint=ctx.profile.workload.endpoint,
            timeout_s=ctx.profile.timeouts.load,
            died=bench.died,
            note=_noter(ctx, bench),
        )
        bench.served_model, bench.serves = loaded.served_model, True
        evidence["load_s"], evidence["first_token_s"] = loaded.load_s, loaded.first_token_s
        answers = {path: await get_json(calls, path) for path in bench.engine.readback_paths}
    known = ctx.row(name).engine or EngineFacts(
        name=bench.engine.name, base_url=bench.base_url, simulated=bench.engine.simulated
    )
    pid = bench.kept.pid if bench.kept else None
    facts = bench.engine.readback(replace(known, served_model=loaded.served_model, pid=pid), answers)
    ctx.recorder.say(EngineRead(at_ns=now_ns(), candidate=name, engine=facts))
    ctx.recorder.say(StatusSet(at_ns=now_ns(), candidate=name, status="load_success"))
    await ctx.ticker.loaded()
    if (failure := _too_short(ctx, facts)) is not None:
        raise CandidateFailed(failure)
    return replace(loaded, launch_s=launch_s)


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
        await ctx.ticker.watch_process(bench.kept.pid)
    return time.monotonic() - began


def _noter(ctx: Context, bench: Bench) -> Callable[[], None]:
    """Says the engine's newest log line, once a second at most and only when it changed."""
    said_at, said_line = 0.0, ""

    def note() -> None:
        nonlocal said_at, said_line
        if time.monotonic() - said_at < NOTE_S:
            return
        said_at, line = time.monotonic(), last_line(bench.folder)[:200]
        if line != said_line:
            said_line = line
            ctx.recorder.say(Progress(at_ns=now_ns(), candidate=bench.candidate.name, done=0, text=line))

    return note


async def _freed(ctx: Context, bench: Bench, began: int) -> None:
    """Record how the stop went and what is left of the engine."""
    if bench.kept is None:
        return
    name, ended = bench.candidate.name, now_ns()
    gpu_left = await ctx.ticker.unwatch()
    ctx.recorder.say(PhaseEnded(at_ns=ended, candidate=name, phase="stopping", seconds=(ended - began) * NS))
    ctx.recorder.say(
        Freed(
            at_ns=ended,
            candidate=name,
            exit_code=bench.kept.exit_code,
            survivors=bench.kept.survivors,
            gpu_left_bytes=gpu_left,
        )
    )
    if bench.kept.survivors:
        ctx.note("error", f"Processes {bench.kept.survivors} of {name} could not be ended.", name)
    if gpu_left is not None and gpu_left > LEFT_BYTES:
        text = f"{name} is gone, and {gib(gpu_left):.2f} GiB of its GPU's memory did not come back."
        ctx.note("warning", f"{text} Look for other processes with nvidia-smi.", name)
