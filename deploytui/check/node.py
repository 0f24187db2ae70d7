"""The node as it is right now: what a candidate may be placed on."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from msgspec import Struct

from deploytui.session.leftovers import session_of
from deploytui.telemetry.device import Device
from deploytui.telemetry.host import memory_free
from deploytui.telemetry.nvml import Gpus
from deploytui.telemetry.visible import allowed_gpus

HOST_PIDS = "pid:[4026531836]"
"""What Linux calls the namespace of processes that is in no container."""
NAME_LENGTH = 100


class GpuProcess(Struct, frozen=True, kw_only=True):
    """A process that holds memory on a GPU before our launch."""

    pid: int
    name: str | None = None
    """What it calls itself; None where the pid is not one of this namespace."""
    bytes: int | None = None
    session: str | None = None
    """The session of ours that it belongs to; None for a foreign one."""


class GpuNow(Struct, frozen=True, kw_only=True):
    """A GPU or MIG slice now; each figure None where the driver does not tell it."""

    uuid: str
    index: int
    name: str
    total_bytes: int | None = None
    free_bytes: int | None = None
    used_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    processes: tuple[GpuProcess, ...] = ()
    unified: bool = False
    """Whether its memory is the host's, and its figures with it."""
    lost: str | None = None


class Node(Struct, frozen=True, kw_only=True):
    """What this process may use of the node."""

    gpus: tuple[GpuNow, ...] = ()
    """Those this process may use, in its order (CUDA_VISIBLE_DEVICES, Slurm)."""
    gpu_missing: str | None = None
    """Why there is none, in the driver library's words."""
    hidden: int = 0
    """GPUs of the node that this process may not use."""
    host_free_bytes: int | None = None
    """Memory that can be taken without swapping, within the control group's limit."""
    swap_free_bytes: int = 0


def read_node(environment: Mapping[str, str] = os.environ, binding: Any = None) -> Node:
    """GPUs and memory now; raises nothing. A cold driver may take seconds, so call it in a thread."""
    gpus = Gpus.open(binding)
    try:
        known = gpus.inventory().gpus
        by_uuid = {device.uuid: device for device in gpus.devices}
        allowed = allowed_gpus(environment, known)
        found = tuple(_now(by_uuid[gpu.uuid]) for gpu in allowed)
        missing = gpus.missing or (_all_hidden(environment, len(known)) if not allowed else None)
    finally:
        gpus.close()
    return Node(
        gpus=found,
        gpu_missing=missing,
        hidden=len(known) - len(allowed),
        host_free_bytes=memory_free(),
        swap_free_bytes=int(psutil.swap_memory().free),
    )


def _all_hidden(environment: Mapping[str, str], count: int) -> str:
    names = ("CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL")
    told = next((f"{name}={environment[name]!r}" for name in names if name in environment), "the environment")
    return f"{told} leaves none of the node's {count} GPUs to this process."


def _now(device: Device) -> GpuNow:
    reading = device.read()
    return GpuNow(
        uuid=device.uuid,
        index=device.index,
        name=device.name,
        total_bytes=reading.total_bytes,
        free_bytes=device.free_bytes(),
        used_bytes=reading.used_bytes,
        unified=reading.memory_source == "system-unified",
        compute_capability=device.capability(),
        processes=tuple(
            GpuProcess(pid=pid, name=process_name(pid), bytes=held, session=session_of(pid))
            for pid, held in sorted(device.processes().items())
        ),
        lost=device.lost,
    )


def process_name(pid: int) -> str | None:
    """What a process the driver names calls itself; None when there is no such process to be seen from here.

    In a container the driver may tell numbers of the host, which mean other processes here: there only a process that
    has the driver's files open is believed to be the one.
    """
    return process_title(pid) if _host_pids() or _uses_driver(pid) else None


def process_title(pid: int) -> str | None:
    """What a process of this namespace calls itself; None when it is gone or does not let us look."""
    try:
        process = psutil.Process(pid)
        return (_title(process) or process.name())[:NAME_LENGTH]
    except (psutil.Error, OSError):
        return None


def _title(process: psutil.Process) -> str:
    """The title it gave itself, such as `VLLM::EngineCore`; else its program. Arguments may be secrets."""
    first: str = next(iter(process.cmdline()), "")
    return Path(first).name if first.startswith("/") else first


def _host_pids() -> bool:
    try:
        return str(Path("/proc/self/ns/pid").readlink()) == HOST_PIDS
    except OSError:
        return False


def _uses_driver(pid: int) -> bool:
    try:
        return any(str(handle.readlink()).startswith("/dev/nvidia") for handle in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
