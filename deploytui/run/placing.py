"""Where an engine is to serve: port, GPUs, container, and the launch that comes of them."""

import secrets
import socket
from pathlib import Path

from deploytui.check.cases import CaseCheck
from deploytui.engine.container import contained, container_name, has_name
from deploytui.engine.openai import api_key
from deploytui.engine.protocol import Engine, Launch, Place
from deploytui.plan.asked import room_needed
from deploytui.plan.forecast import engine_slots
from deploytui.plan.prompts import TEMPLATE_ROOM
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure
from deploytui.run.bench import Bench
from deploytui.run.containers import Named
from deploytui.run.context import Context
from deploytui.run.failing import CandidateFailed
from deploytui.run.gpus import environment
from deploytui.session.leftovers import mark

TRIES = 5
"""How many ports are tried before it is said that none can be had."""


def attached(candidate: Candidate, engine: Engine, folder: Path) -> Bench:
    """An endpoint that runs already."""
    door_only = engine.launch(candidate, Place(port=0, model_path=None, concurrency=0, context_tokens=0))
    bench = Bench(candidate, engine, door_only.base_url, folder, served_model=door_only.served_model)
    bench.ready_path = door_only.ready_path
    if (key := api_key(candidate)) is not None:
        bench.headers["Authorization"] = f"Bearer {key}"
    return bench


def container_of(ctx: Context, candidate: Candidate) -> Named | None:
    """The container a candidate gets; None without one, or where it is only a process of the runtime."""
    if candidate.container is None or not has_name(candidate.container):
        return None
    return Named(candidate.container, container_name(ctx.folder.id, candidate.name))


def planned_launch(
    ctx: Context, candidate: Candidate, engine: Engine, check: CaseCheck, folder: Path
) -> tuple[Bench, Launch]:
    """The bench and the launch, on a port that nobody listens on at this moment."""
    key = secrets.token_hex(24)
    ctx.recorder.hide(key)
    place = Place(
        port=_port(candidate.name),
        model_path=check.model_path,
        concurrency=max(
            engine_slots(ctx.profile.workload), ctx.profile.quality.concurrency if ctx.profile.quality.tasks else 1
        ),
        context_tokens=_context(ctx),
        gpu_uuids=check.gpu_uuids,
        api_key=key,
        probed=check.probed,
    )
    launch = engine.launch(candidate, place)
    bench = Bench(
        candidate,
        engine,
        launch.base_url,
        folder,
        {"Authorization": f"Bearer {key}"},
        served_model=launch.served_model,
        gpu_uuids=check.gpu_uuids,
        ready_path=launch.ready_path or candidate.ready_path,
        container=container_of(ctx, candidate),
        port=place.port,
    )
    bench.inner_argv = launch.argv
    return bench, _inside(ctx, candidate, launch, check)


def _inside(ctx: Context, candidate: Candidate, launch: Launch, check: CaseCheck) -> Launch:
    if candidate.container is None:
        return launch
    return contained(
        launch,
        candidate.container,
        name=container_name(ctx.folder.id, candidate.name),
        session=ctx.folder.id,
        model_path=check.model_path,
        gpu_uuids=check.gpu_uuids,
        env_names=engine_env(ctx, candidate, launch, check.gpu_uuids).keys() | mark(ctx.folder.id).keys(),
    )


def engine_env(ctx: Context, candidate: Candidate, launch: Launch, gpu_uuids: tuple[str, ...]) -> dict[str, str]:
    """What an engine's environment has on top of ours."""
    return {**environment(candidate, gpu_uuids), **launch.env, **candidate.env}


def _context(ctx: Context) -> int:
    """Tokens of the longest request: the workload's, or a quality item's answer with room for its question."""
    quality = ctx.profile.quality
    asked = room_needed(ctx.profile.workload, ctx.inputs)
    return max(asked, quality.max_tokens + TEMPLATE_ROOM if quality.tasks else 0)


def _port(name: str) -> int:
    """A port nobody listens on, found free twice: a listener that looks for one, too, may just have come."""
    for _ in range(TRIES):
        if is_free(port := free_port()):
            return port
    raise CandidateFailed(
        Failure(
            kind="port_in_use",
            what=f"No port is free for {name}.",
            why=f"{TRIES} ports the system gave were taken a moment later.",
            fix="Look at what opens ports on this node, and run again.",
        )
    )


def free_port() -> int:
    """A loopback port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def first_facts(bench: Bench, check: CaseCheck, launch: Launch, foreign: tuple[str, ...] = ()) -> EngineFacts:
    """What is known of an engine before it runs."""
    candidate, inner = bench.candidate, bench.inner_argv
    return EngineFacts(
        name=bench.engine.name,
        version=check.probed.version if check.probed else None,
        argv=launch.shown_argv or launch.argv,
        base_url=launch.base_url,
        served_model=launch.served_model,
        device=candidate.device,
        simulated=bench.engine.simulated,
        python=inner[0] if inner and Path(inner[0]).name.startswith("python") else None,
        container=candidate.container.image if candidate.container else None,
        gpu_uuids=bench.gpu_uuids,
        foreign_gpu_processes=foreign,
        trust_remote_code=candidate.trust_remote_code,
        allow_pickle=candidate.allow_pickle,
    )
