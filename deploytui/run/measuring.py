"""Warm-up, repeats and quality tasks of one launch: each step is finished only when its files are on disk."""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from anyio import to_thread

from deploytui.load.orders import LoadOrder, Report
from deploytui.plan.asked import common_output_tokens
from deploytui.plan.forecast import engine_slots
from deploytui.plan.loads import at_point
from deploytui.plan.parts import WARMUP, part_name
from deploytui.profile.load_schema import Closed, Load
from deploytui.record.events import Measured, RepeatDone
from deploytui.record.facts import Failure, Sidecar
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics
from deploytui.record.metrics import RepeatSample, measure_many
from deploytui.record.planned import PlannedStep
from deploytui.run.bench import Bench, Loaded, load_orders, put_load, step_label
from deploytui.run.context import Context
from deploytui.run.failing import CandidateFailed
from deploytui.run.notable import notable
from deploytui.run.prompting import part_path
from deploytui.run.recorder import now_ns
from deploytui.run.samples import first_error, repeat_sample
from deploytui.run.sharing import OPENED_AT_MOST, busiest_second
from deploytui.run.sidecars import sidecar


async def warm(ctx: Context, bench: Bench) -> int:
    """Send the warm-up requests; how many there were."""
    workload = ctx.profile.workload
    if workload.warmup_requests == 0:
        return 0
    orders = load_orders(
        ctx,
        bench,
        part_path(ctx.folder, WARMUP),
        WARMUP,
        sampling=workload.sampling,
        body=workload.body,
        output_tokens=common_output_tokens(workload, ctx.inputs),
        concurrency=engine_slots(workload),
        think_time_s=workload.load.think_time_s if isinstance(workload.load, Closed) else 0.0,
    )
    await put_load(ctx, bench, WARMUP, orders)
    await to_thread.run_sync(importlib.import_module, "deploytui.run.gaps")  # so that no repeat's figures wait for it
    return workload.warmup_requests


async def measure_steps(ctx: Context, bench: Bench, steps: Sequence[PlannedStep]) -> None:
    """All repeats; the pooled metrics of a point as soon as its last repeat is finished."""
    samples: dict[int, list[RepeatSample]] = {}
    left = [step.key.point for step in steps]
    error = ""
    answered = False
    for step in steps:
        await ctx.halt.go.wait()
        samples.setdefault(step.key.point, []).append(await measure_repeat(ctx, bench, step))
        left.remove(step.key.point)
        if step.key.point not in left:
            pool = samples.pop(step.key.point)
            if len(pool) == 1:
                pooled = ctx.row(bench.candidate.name).repeats[-1].metrics
            else:
                pooled = await to_thread.run_sync(pooled_metrics, ctx, step.key.point, pool)
            ctx.recorder.say(
                Measured(at_ns=now_ns(), candidate=bench.candidate.name, point=step.key.point, metrics=pooled)
            )
            answered, error = answered or pooled.ok > 0, error or first_error(pool)
        ctx.decide_so_far()
    if steps and not answered:
        raise CandidateFailed(_nothing_ok(bench, error))


async def measure_repeat(ctx: Context, bench: Bench, step: PlannedStep) -> RepeatSample:
    """One repeat at its point, on disk and in the journal when this returns."""
    loads = await _put_repeat(ctx, bench, step.key)
    for text in notable(ctx.profile.workload, step.key, loads):
        ctx.note("warning", f"{bench.candidate.name}: {text}", bench.candidate.name)
    sample = await to_thread.run_sync(repeat_sample, loads)
    done = RepeatDone(
        at_ns=now_ns(),
        step=step.key,
        metrics=await to_thread.run_sync(pooled_metrics, ctx, step.key.point, [sample]),
        sidecars=await to_thread.run_sync(sidecars, ctx, loads),
    )
    ctx.recorder.say(done)
    await ctx.recorder.sync()
    return sample


async def _put_repeat(ctx: Context, bench: Bench, key: StepKey) -> Loaded:
    workload, label = ctx.profile.workload, step_label(key)
    assert key.repeat is not None
    prompts = part_path(ctx.folder, part_name(workload.load, key.point, key.repeat))
    orders = load_orders(
        ctx,
        bench,
        prompts,
        label,
        sampling=workload.sampling,
        body=workload.body,
        output_tokens=common_output_tokens(workload, ctx.inputs),
        max_s=workload.max_seconds,
        max_error_rate=workload.max_error_rate,
        **await to_thread.run_sync(_arriving, at_point(workload.load, key.point), prompts),
    )
    return await put_load(ctx, bench, label, orders)


def _arriving(load: Load, prompts: Path) -> dict[str, Any]:
    """The fields of an order that say when its requests leave."""
    if isinstance(load, Closed):
        assert isinstance(load.concurrency, int), "a point of a sweep has one number"
        return {"concurrency": load.concurrency, "think_time_s": load.think_time_s}
    rate = busiest_second(prompts)
    return {"loop": "open", "concurrency": min(rate, OPENED_AT_MOST), "streams": rate}


def pooled_metrics(ctx: Context, point: int, samples: Sequence[RepeatSample]) -> Metrics:
    """The numbers of some repeats at a point of the context's workload."""
    workload = ctx.profile.workload
    load = at_point(workload.load, point)
    return measure_many(
        samples,
        asked_tokens=common_output_tokens(workload, ctx.inputs),
        target_concurrency=load.concurrency if isinstance(load, Closed) and isinstance(load.concurrency, int) else None,
        gates=ctx.profile.gates,
    )


def sidecars(ctx: Context, loads: Loaded) -> tuple[Sidecar, ...]:
    """The files of all workers; each was hashed as it was written."""
    return tuple(file for order, report in loads for file in _of_worker(ctx.folder.path, order, report))


def _of_worker(root: Path, order: LoadOrder, report: Report) -> Iterator[Sidecar]:
    yield sidecar(Path(order.records), root, report.requests, report.records_sha256, report.records_bytes)
    yield sidecar(Path(order.stamps), root, report.requests, report.stamps_sha256, report.stamps_bytes)


def _nothing_ok(bench: Bench, error: str) -> Failure:
    return Failure(
        kind="request_rejected",
        what=f"{bench.candidate.name}: not one of its requests succeeded.",
        why=error,
        fix="Compare the workload's lengths with the context the engine serves.",
    )
