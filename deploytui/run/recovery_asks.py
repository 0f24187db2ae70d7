"""What an engine has to bear in a recovery check: the loads, their prompts, and what came of them."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from deploytui.load.orders import LoadOrder, Prompt
from deploytui.plan.forecast import engine_slots
from deploytui.profile.schema import Sampling
from deploytui.record.trace import RequestRecord
from deploytui.run.bench import Bench, load_orders
from deploytui.run.context import Context
from deploytui.run.loads import run_load
from deploytui.run.samples import read_records
from deploytui.run.sidecars import write_synced

LIMIT_S = 30.0
"""How long each load may take [s]."""
ABORT_S = 2.0
"""When streams are cut, counted from their start [s]."""
MOST_STREAMS = 8
"""Streams that are cut at once, at most."""
TIMES_SLOTS = 4
"""Requests of a burst for each that the workload keeps in flight."""
MOST_BURST = 512
LONG_ANSWER = 2000
"""Tokens asked of a stream that is to be cut: enough that it is under way then."""
SHORT_ANSWER = 16
UNKNOWN_CONTEXT = 131_072
"""Taken for the context of an engine that does not tell its own [tokens]."""
MOST_WORDS = 1 << 20


def context_tokens(ctx: Context, bench: Bench) -> int:
    """The context, as the engine or else the model tells it; a usual one where neither does."""
    row = ctx.row(bench.candidate.name)
    told = row.engine.settings.get("max_model_len") if row.engine else None
    if isinstance(told, int) and not isinstance(told, bool):
        return told
    return (row.artifact.context_length if row.artifact else None) or UNKNOWN_CONTEXT


async def ask_over_long(ctx: Context, bench: Bench) -> list[RequestRecord]:
    """One request whose prompt is twice the context."""
    words = min(2 * context_tokens(ctx, bench) + 64, MOST_WORDS)
    return await _ask(ctx, bench, "recovery-long", ["word " * words], output_tokens=1)


async def cut_streams(ctx: Context, bench: Bench) -> list[RequestRecord]:
    """Several long answers, all left in the middle."""
    count = max(2, min(engine_slots(ctx.profile.workload), MOST_STREAMS))
    long = max(SHORT_ANSWER, min(LONG_ANSWER, context_tokens(ctx, bench) // 2))
    prompts = [f"Count from {number} on and do not stop." for number in range(count)]
    return await _ask(ctx, bench, "recovery-abort", prompts, output_tokens=long, max_s=ABORT_S)


async def burst(ctx: Context, bench: Bench) -> list[RequestRecord]:
    """Many more requests at once than the workload ever sends."""
    count = min(TIMES_SLOTS * engine_slots(ctx.profile.workload), MOST_BURST)
    prompts = [f"Say a word that begins like {number}." for number in range(count)]
    return await _ask(ctx, bench, "recovery-burst", prompts, output_tokens=SHORT_ANSWER, max_s=LIMIT_S)


async def _ask(
    ctx: Context, bench: Bench, label: str, prompts: list[str], *, output_tokens: int, max_s: float | None = None
) -> list[RequestRecord]:
    """All requests at once; the records of those that were sent, also when the time is over."""
    path = bench.folder / f"{label}.prompts.jsonl"
    lines = [msgspec.json.encode(Prompt(id=number, prompt=text)) for number, text in enumerate(prompts)]
    await to_thread.run_sync(write_synced, path, lines)
    orders = load_orders(
        ctx,
        bench,
        path,
        label,
        sampling=Sampling(ignore_eos=bench.candidate.api == "openai"),
        output_tokens=output_tokens,
        concurrency=len(prompts),
        max_s=max_s,
    )
    bounded = [msgspec.structs.replace(order, request_timeout_s=LIMIT_S) for order in orders]
    with anyio.move_on_after(2 * LIMIT_S):
        await run_load(bounded, spares=ctx.spares, hear=lambda _: None)
    return await to_thread.run_sync(list, _records(bounded))


def _records(orders: list[LoadOrder]) -> Iterator[RequestRecord]:
    for order in orders:
        path = Path(order.records)
        if path.is_file():
            yield from read_records(path)
