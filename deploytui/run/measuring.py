"""Warm-up, repeats and quality tasks of one launch: each step is finished only when its files are on disk."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from anyio import to_thread

from deploytui.load.orders import LoadOrder, Report
from deploytui.profile.schema import Closed, Sampling
from deploytui.quality.score import score_task, total
from deploytui.quality.tasks import Task, load_task, prompts_for
from deploytui.record.events import Measured, RepeatDone, TaskDone
from deploytui.record.facts import Failure, Sidecar
from deploytui.record.measured import Metrics, Quality
from deploytui.record.metrics import RepeatSample, measure_many
from deploytui.record.planned import PlannedStep
from deploytui.run.bench import Bench, load_order, put_load, step_label
from deploytui.run.context import Context
from deploytui.run.failing import CandidateFailed
from deploytui.run.prompting import part_path
from deploytui.run.recorder import now_ns
from deploytui.run.samples import first_error, read_records, repeat_sample
from deploytui.run.sidecars import sidecar, write_synced


async def warm(ctx: Context, bench: Bench) -> int:
    """Send the warm-up requests; how many there were."""
    workload = ctx.profile.workload
    if workload.warmup_requests == 0:
        return 0
    order = load_order(
        ctx,
        bench,
        part_path(ctx.folder, "warmup"),
        "warmup",
        sampling=workload.sampling,
        output_tokens=workload.output_tokens,
        concurrency=concurrency(ctx),
        think_time_s=_think_time(ctx),
    )
    report = await put_load(ctx, bench, order)
    await bench.check_alive(broken=report.ok < report.requests)
    return workload.warmup_requests


def concurrency(ctx: Context) -> int:
    """Requests kept in flight by the workload."""
    value = getattr(ctx.profile.workload.load, "concurrency", 1)
    assert isinstance(value, int), "sweeps are refused before"
    return value


def _think_time(ctx: Context) -> float:
    load = ctx.profile.workload.load
    return load.think_time_s if isinstance(load, Closed) else 0.0


async def measure_steps(ctx: Context, bench: Bench, steps: Sequence[PlannedStep]) -> None:
    """All repeats, then the pooled metrics."""
    samples: list[RepeatSample] = []
    for step in steps:
        await ctx.halt.go.wait()
        samples.append(await _repeat(ctx, bench, step))
        ctx.decide_so_far()
    pooled = await to_thread.run_sync(_measured, ctx, samples)
    ctx.recorder.say(Measured(at_ns=now_ns(), candidate=bench.candidate.name, metrics=pooled))
    if pooled.ok == 0:
        raise CandidateFailed(_nothing_ok(bench, samples))


async def _repeat(ctx: Context, bench: Bench, step: PlannedStep) -> RepeatSample:
    workload = ctx.profile.workload
    order = load_order(
        ctx,
        bench,
        part_path(ctx.folder, f"r{step.key.repeat}"),
        step_label(step.key),
        sampling=workload.sampling,
        output_tokens=workload.output_tokens,
        concurrency=concurrency(ctx),
        think_time_s=_think_time(ctx),
    )
    report = await put_load(ctx, bench, order)
    await bench.check_alive(broken=report.ok < report.requests)
    sample = await to_thread.run_sync(repeat_sample, order, report)
    done = RepeatDone(
        at_ns=now_ns(),
        step=step.key,
        metrics=await to_thread.run_sync(_measured, ctx, [sample]),
        sidecars=await _sidecars(ctx, order, report),
    )
    ctx.recorder.say(done)
    await ctx.recorder.sync()
    return sample


def _measured(ctx: Context, samples: Sequence[RepeatSample]) -> Metrics:
    return measure_many(
        samples,
        asked_tokens=ctx.profile.workload.output_tokens,
        target_concurrency=concurrency(ctx),
        gates=ctx.profile.gates,
    )


async def _sidecars(ctx: Context, order: LoadOrder, report: Report) -> tuple[Sidecar, ...]:
    root = ctx.folder.path
    return (
        await to_thread.run_sync(sidecar, Path(order.records), root, report.requests),
        await to_thread.run_sync(sidecar, Path(order.stamps), root, report.requests),
    )


def _nothing_ok(bench: Bench, samples: Sequence[RepeatSample]) -> Failure:
    return Failure(
        kind="request_rejected",
        what=f"{bench.candidate.name}: not one of its requests succeeded.",
        why=first_error(samples),
        fix="Compare the workload's lengths with the context the engine serves.",
    )


async def ask_tasks(ctx: Context, bench: Bench, steps: Sequence[PlannedStep]) -> Quality | None:
    """Ask and score all quality tasks; None when there are none."""
    scores = []
    for step in steps:
        await ctx.halt.go.wait()
        task = load_task(step.key.task or "", ctx.base_dir)
        scores.append(await _task(ctx, bench, step, task))
    return total([done.score for done in scores]) if scores else None


async def _task(ctx: Context, bench: Bench, step: PlannedStep, task: Task) -> TaskDone:
    quality = ctx.profile.quality
    path = bench.folder / f"{step_label(step.key)}.prompts.jsonl"
    write_synced(path, [msgspec.json.encode(prompt) for prompt in prompts_for(task, quality.max_tokens)])
    order = load_order(
        ctx,
        bench,
        path,
        step_label(step.key),
        sampling=Sampling(ignore_eos=False),
        endpoint="chat",
        output_tokens=quality.max_tokens,
        concurrency=quality.concurrency,
        keep_text=True,
    )
    report = await put_load(ctx, bench, order)
    await bench.check_alive(broken=report.ok < report.requests)
    records = await to_thread.run_sync(read_records, Path(order.records))
    done = TaskDone(
        at_ns=now_ns(),
        step=step.key,
        score=score_task(task, records),
        sidecars=await _sidecars(ctx, order, report),
    )
    ctx.recorder.say(done)
    await ctx.recorder.sync()
    return done
