"""A candidate with its engine at the door, and the loads put on it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from deploytui.engine.protocol import Engine
from deploytui.load.orders import LoadOrder, Report
from deploytui.profile.schema import Candidate, Sampling
from deploytui.record.facts import Failure
from deploytui.record.keys import StepKey
from deploytui.run.containers import Named
from deploytui.run.context import Context
from deploytui.run.doors import door, get_json
from deploytui.run.failing import EngineDied, why_it_died
from deploytui.run.keeping import Kept
from deploytui.run.loads import run_load
from deploytui.run.sharing import shared, worker_count
from deploytui.session.folder import safe_name

PEAKS = ("peak_allocated_bytes", "peak_reserved_bytes")
MEMORY_S = 5.0
"""How long an engine may take to tell its memory [s]."""
DEATH_S = 1.0
"""How long the end of an engine may come after the requests it broke [s]."""

Loaded = tuple[tuple[LoadOrder, Report], ...]
"""What each worker of a load was asked, and what it reported."""


@dataclass
class Bench:
    """A launched candidate; `kept` is None for an endpoint that runs already."""

    candidate: Candidate
    engine: Engine
    base_url: str
    folder: Path
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    served_model: str = ""
    kept: Kept | None = None
    gpu_uuids: tuple[str, ...] = ()
    serves: bool = False
    """Whether it has answered."""
    ready_path: str | None = None
    """Path or URL that answers 200 when it can serve; None leaves it to the engine."""
    port: int | None = None
    """Where it was told to listen; None for an endpoint that runs already."""
    inner_argv: tuple[str, ...] = ()
    """The engine's own argv, without that of a container round it."""
    container: Named | None = None
    container_pid: int | None = None
    """The first process of its container, once it is known."""

    @property
    def root_pid(self) -> int | None:
        """The process below which all of the engine's are; None where that is not known."""
        if self.container is not None:
            return self.container_pid
        return self.kept.process.pid if self.kept is not None else None

    def died(self) -> Failure:
        """Why the engine's process is gone."""
        assert self.kept is not None
        return why_it_died(self.engine, self.kept, self.folder, "serving" if self.serves else "loading")

    async def check_alive(self, *, broken: bool) -> None:
        """Raise when the engine died; its exit may come a little after the requests it broke."""
        if self.kept is None:
            return
        with anyio.move_on_after(DEATH_S if broken else 0.0):
            await self.kept.exited.wait()
        if self.kept.exited.is_set():
            raise EngineDied(self.died)


async def framework_memory(bench: Bench) -> dict[str, int]:
    """The framework's own peaks, `peak_allocated_bytes` and `peak_reserved_bytes`, where the engine tells them.

    Asked before the engine is stopped, also while everything is being cancelled; an engine that does not answer
    tells nothing.
    """
    path = bench.engine.memory_path
    if path is None or (bench.kept is not None and not bench.kept.alive):
        return {}
    told: Any = None
    with anyio.move_on_after(MEMORY_S, shield=True):
        async with door(bench.base_url, bench.headers) as calls:
            told = await get_json(calls, path)
    found = told if isinstance(told, dict) else {}
    return {key: value for key in PEAKS if isinstance(value := found.get(key), int) and value > 0}


def sampling_body(sampling: Sampling) -> dict[str, Any]:
    """The sampling fields of each request: all that are set, and those that engines would fill in themselves."""
    optional = {
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
    }
    body: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    body |= {key: value for key, value in optional.items() if value is not None}
    return body | ({"ignore_eos": True} if sampling.ignore_eos else {})


def load_orders(
    ctx: Context,
    bench: Bench,
    prompts: Path,
    label: str,
    *,
    sampling: Sampling,
    concurrency: int,
    streams: int | None = None,
    body: dict[str, Any] | None = None,
    **more: Any,
) -> tuple[LoadOrder, ...]:
    """An order for each worker of one load on the bench; `label` names its files.

    `streams` are the requests per second of an open loop, where `concurrency` are only its first connections.
    """
    workload = ctx.profile.workload
    whole = LoadOrder(
        base_url=bench.base_url,
        endpoint=more.pop("endpoint", "generate" if bench.candidate.api == "tgi" else workload.endpoint),
        model=bench.served_model,
        headers={**workload.headers, **bench.headers},
        body={
            **sampling_body(sampling),
            "seed": workload.seed,
            **(body or {}),
            **bench.engine.body(bench.candidate),
        },
        secrets=ctx.recorder.secrets,
        prompts=str(prompts),
        concurrency=concurrency,
        transport=bench.candidate.transport,
        request_timeout_s=ctx.profile.timeouts.request,
        records=str(bench.folder / f"{label}.requests.w0.jsonl"),
        stamps=str(bench.folder / f"{label}.stamps.w0.bin"),
        **more,
    )
    return shared(whole, worker_count(ctx.profile.load_workers, streams or concurrency))


async def put_load(ctx: Context, bench: Bench, label: str, orders: Sequence[LoadOrder]) -> Loaded:
    """Run one load; files of an earlier try of the same step make room first."""
    _make_room(bench.folder, label)
    ctx.ticker.begin_load()
    try:
        reports = await run_load(orders, spares=ctx.spares, hear=ctx.ticker.hear)
    finally:
        ctx.ticker.end_load()
    await bench.check_alive(broken=any(report.ok < report.requests for report in reports))
    return tuple(zip(orders, reports, strict=True))


def _make_room(folder: Path, label: str) -> None:
    for path in folder.iterdir():
        if path.name.startswith((f"{label}.requests.w", f"{label}.stamps.w")):
            path.unlink()


def step_label(key: StepKey) -> str:
    """The step's part of a file name within the candidate's folder."""
    what = f"r{key.repeat}" if key.repeat is not None else f"task-{safe_name(key.task or '')}"
    return f"l{key.launch}.p{key.point}.{what}"
