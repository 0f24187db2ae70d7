"""What is left of an engine after its end: processes, a container, memory that did not come back."""

from anyio import to_thread

from deploytui.check.devices import holders
from deploytui.check.node import process_title, read_node
from deploytui.record.engine_events import Freed
from deploytui.record.events import PhaseEnded
from deploytui.run.bench import Bench
from deploytui.run.context import Context
from deploytui.run.recorder import now_ns
from deploytui.run.ticker import LEFT_BYTES
from deploytui.units import GIB, NS


async def freed(ctx: Context, bench: Bench | None, began: int, containers: list[str]) -> None:
    """Record how the stop went and what is left; nothing of an engine that was never begun."""
    if bench is None or bench.kept is None:
        await ctx.ticker.unwatch()
        return
    name, ended = bench.candidate.name, now_ns()
    gpu_left = await ctx.ticker.unwatch()
    survivors = bench.kept.survivors
    names = tuple(process_title(pid) or "?" for pid in survivors)
    ctx.recorder.say(PhaseEnded(at_ns=ended, candidate=name, phase="stopping", seconds=(ended - began) * NS))
    ctx.recorder.say(
        Freed(
            at_ns=ended,
            candidate=name,
            exit_code=bench.kept.exit_code,
            survivors=survivors,
            survivor_names=names,
            gpu_left_bytes=gpu_left,
        )
    )
    if survivors:
        told = ", ".join(f"{pid} ({what})" for pid, what in zip(survivors, names, strict=True))
        ctx.note("error", f"Processes of {name} could not be ended: {told}.", name)
    for container in containers:
        ctx.note("error", f"The container {container} of {name} could not be removed.", name)
    if gpu_left is not None and gpu_left > LEFT_BYTES:
        ctx.note("warning", await _not_back(name, gpu_left, bench.gpu_uuids), name)


async def _not_back(name: str, left_bytes: int, gpu_uuids: tuple[str, ...]) -> str:
    """Whose the memory is that did not come back, where the driver tells."""
    node = await to_thread.run_sync(read_node)
    held = [process for gpu in node.gpus if gpu.uuid in gpu_uuids for process in gpu.processes]
    who = f"It is held by {holders(tuple(held))}." if held else "Look for other processes with nvidia-smi."
    return f"{name} is gone, and {left_bytes / GIB:.2f} GiB of its GPU's memory did not come back. {who}"
