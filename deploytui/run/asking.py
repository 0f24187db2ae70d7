"""Quality tasks of one launch, asked at the same door as the workload."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from anyio import to_thread

from deploytui.profile.schema import Sampling
from deploytui.quality.score import score_task, total
from deploytui.quality.tasks import Task, load_task, prompts_for
from deploytui.record.events import TaskDone
from deploytui.record.measured import Quality
from deploytui.record.planned import PlannedStep
from deploytui.run.bench import Bench, load_orders, put_load, step_label
from deploytui.run.context import Context
from deploytui.run.measuring import sidecars
from deploytui.run.recorder import now_ns
from deploytui.run.samples import read_records
from deploytui.run.sidecars import write_synced


async def ask_tasks(ctx: Context, bench: Bench, steps: Sequence[PlannedStep]) -> Quality | None:
    """Ask and score all quality tasks; None when there are none."""
    scores = []
    for step in steps:
        await ctx.halt.go.wait()
        task = load_task(step.key.task or "", ctx.base_dir)
        scores.append(await _task(ctx, bench, step, task))
    return total([done.score for done in scores]) if scores else None


async def _task(ctx: Context, bench: Bench, step: PlannedStep, task: Task) -> TaskDone:
    quality, label = ctx.profile.quality, step_label(step.key)
    path = bench.folder / f"{label}.prompts.jsonl"
    write_synced(path, [msgspec.json.encode(prompt) for prompt in prompts_for(task, quality.max_tokens)])
    orders = load_orders(
        ctx,
        bench,
        path,
        label,
        sampling=Sampling(ignore_eos=False),
        endpoint="chat",
        output_tokens=quality.max_tokens,
        concurrency=quality.concurrency,
        keep_text=True,
    )
    loads = await put_load(ctx, bench, label, orders)
    records = [record for order, _ in loads for record in await to_thread.run_sync(read_records, Path(order.records))]
    done = TaskDone(
        at_ns=now_ns(),
        step=step.key,
        score=score_task(task, records),
        sidecars=await to_thread.run_sync(sidecars, ctx, loads),
    )
    ctx.recorder.say(done)
    await ctx.recorder.sync()
    return done
