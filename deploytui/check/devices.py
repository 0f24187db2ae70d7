"""Which GPUs a candidate gets: of those this process may use, as many as it asks for, in their order."""

import math
from collections.abc import Iterable, Iterator

from deploytui.artifact.facts import ModelFacts
from deploytui.check.node import GpuNow, GpuProcess, Node
from deploytui.engine.protocol import Engine
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure
from deploytui.units import GIB

IN_USE_BYTES = 512 << 20
"""More than an idle GPU shows as used; where processes can't be seen, this tells that there are some."""

Choice = tuple[GpuNow, ...] | Failure


def choose(engine: Engine, candidate: Candidate, facts: ModelFacts | None, node: Node) -> Choice:
    """The candidate's GPUs, none for the CPU; or why it can't have what it asks for."""
    if failure := _wrong_kind(engine, candidate, node):
        return failure
    if candidate.device == "cpu" or "cuda" not in engine.capabilities.devices:
        return ()
    if isinstance(candidate.devices, tuple):
        return _named(candidate, candidate.devices, node)
    alive = [gpu for gpu in node.gpus if gpu.lost is None]
    wanted = candidate.devices or parallel(candidate, facts)
    insists = candidate.devices is not None or candidate.device == "cuda" or wanted > 1
    if wanted > len(alive) and (insists or "cpu" not in engine.capabilities.devices):
        return _too_few(candidate.name, wanted, node)
    free_first = sorted(alive, key=is_used)  # sorting is stable: otherwise the order is kept
    chosen = {gpu.uuid for gpu in free_first[:wanted]}
    return tuple(gpu for gpu in alive if gpu.uuid in chosen)


def parallel(candidate: Candidate, facts: ModelFacts | None = None) -> int:
    """How many GPUs the parallel settings need, or those that a TensorRT engine was built with."""
    settings, built = candidate.settings, facts.tensorrt if facts else None
    tensor = settings.tensor_parallel or (built.tensor_parallel if built else None) or 1
    pipeline = settings.pipeline_parallel or (built.pipeline_parallel if built else None) or 1
    return math.prod((tensor, pipeline, settings.data_parallel or 1))


def is_used(gpu: GpuNow) -> bool:
    """Whether somebody else works on it; of memory that it shares with the host, the bytes in use don't tell."""
    return bool(gpu.processes) or (not gpu.unified and (gpu.used_bytes or 0) > IN_USE_BYTES)


def neighbours(chosen: Iterable[GpuNow]) -> Iterator[str]:
    """Who else is on these GPUs, a sentence for each where somebody is."""
    for gpu in chosen:
        if gpu.processes:
            yield f"GPU {gpu.index} ({gpu.uuid}) is in use by {holders(gpu.processes)}: memory and speed are shared."
        elif is_used(gpu):
            held = (gpu.used_bytes or 0) / GIB
            yield (
                f"GPU {gpu.index} ({gpu.uuid}) has {held:.2f} GiB in use, by processes that can't be seen from here "
                "(such as those of another container): memory and speed are shared."
            )


def use_notes(chosen: tuple[GpuNow, ...], node: Node) -> Iterator[str]:
    """Who is on the chosen GPUs, and which were passed over because somebody is."""
    yield from neighbours(chosen)
    if not chosen:
        return
    for gpu in chosen:
        if gpu.unified:
            yield f"GPU {gpu.index} ({gpu.name}) shares the host's memory: its figures count all that runs here."
    last = max(node.gpus.index(gpu) for gpu in chosen)
    for gpu in node.gpus[:last]:
        if gpu not in chosen and (gpu.lost or is_used(gpu)):
            yield f"GPU {gpu.index} was passed over: {gpu.lost or f'it is in use by {holders(gpu.processes)}'}."


def holders(processes: tuple[GpuProcess, ...]) -> str:
    """Processes with pid, name and memory, in one line."""
    return ", ".join(map(_holder, processes)) or "processes that can't be seen from here"


def _holder(process: GpuProcess) -> str:
    more = [process.name or "of another namespace"]
    if process.bytes is not None:
        more.append(f"{process.bytes / GIB:.2f} GiB")
    if process.session:
        more.append(f"of deploytui session {process.session}")
    return f"process {process.pid} ({', '.join(more)})"


def _wrong_kind(engine: Engine, candidate: Candidate, node: Node) -> Failure | None:
    device, possible = candidate.device, engine.capabilities.devices
    if device is not None and device not in possible:
        return Failure(
            kind="wrong_device",
            what=f"{candidate.name} asks for device = {device!r}, and {engine.title} runs on {_names(possible)}.",
            fix="Correct `device`, or choose another engine.",
        )
    if device == "cpu" and candidate.devices is not None:
        return Failure(
            kind="invalid_config",
            what=f'{candidate.name} asks for GPUs with `devices` and for device = "cpu".',
            fix="Remove one of the two.",
        )
    return None


def _names(devices: frozenset[str]) -> str:
    return " and ".join(sorted(devices)) or "nothing"


def _named(candidate: Candidate, uuids: tuple[str, ...], node: Node) -> Choice:
    chosen: list[GpuNow] = []
    for uuid in uuids:
        found = [gpu for gpu in node.gpus if gpu.uuid.lower().startswith(uuid.lower())]
        if len(found) != 1:
            return _not_there(candidate.name, uuid, node)
        if found[0].lost is not None:
            return _lost(candidate.name, found[0])
        if found[0] in chosen:
            return Failure(
                kind="invalid_config",
                what=f"{candidate.name} names the GPU {uuid} twice in `devices`.",
                fix="Name each GPU once.",
            )
        chosen.append(found[0])
    if len(chosen) < (needed := parallel(candidate)):
        return Failure(
            kind="wrong_device",
            what=f"{candidate.name} names {len(chosen)} GPUs in `devices`, and its parallel settings need {needed}.",
            fix="Name more GPUs, or lower tensor_parallel, pipeline_parallel or data_parallel.",
        )
    return tuple(chosen)


def _too_few(name: str, wanted: int, node: Node) -> Failure:
    lost = [gpu for gpu in node.gpus if gpu.lost]
    there = len(node.gpus) - len(lost)
    why = [f"GPU {gpu.index} ({gpu.uuid}): {gpu.lost}" for gpu in lost]
    if node.gpu_missing:
        why.append(node.gpu_missing)
    elif node.hidden:
        why.append(f"{node.hidden} more GPUs of this node are hidden from it by CUDA_VISIBLE_DEVICES or the Slurm job.")
    return Failure(
        kind="wrong_device",
        what=f"{name} needs {wanted} GPU{'s' if wanted > 1 else ''}, and this process may use {there or 'none'}.",
        why=" ".join(why),
        fix="Lower `devices` or the parallel settings, or look at CUDA_VISIBLE_DEVICES and the driver.",
    )


def _not_there(name: str, uuid: str, node: Node) -> Failure:
    usable = ", ".join(gpu.uuid for gpu in node.gpus)
    return Failure(
        kind="wrong_device",
        what=f"{name} names the GPU {uuid}, which this process may not use.",
        why=node.gpu_missing or "",
        fix=f"It may use: {usable or 'none'}.",
    )


def _lost(name: str, gpu: GpuNow) -> Failure:
    return Failure(
        kind="wrong_device",
        what=f"{name} names GPU {gpu.index} ({gpu.uuid}), which the driver can't reach any more.",
        why=gpu.lost or "",
        fix="Reset or reboot the node, or name another GPU in `devices`.",
    )
