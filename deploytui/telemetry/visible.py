"""Which GPUs of the node a process may use, as CUDA and Slurm tell it."""

from collections.abc import Mapping, Sequence

from deploytui.record.facts import Gpu
from deploytui.telemetry.nvml import usable_gpus

CUDA = "CUDA_VISIBLE_DEVICES"
SLURM_GLOBAL = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
"""Numbers of the node's GPUs."""
SLURM_OWN = "GPU_DEVICE_ORDINAL"
"""Numbers as the job sees its GPUs."""


def allowed_gpus(environment: Mapping[str, str], gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs a process with this environment may use, in its order; all of them when nothing says otherwise.

    CUDA's own variable decides; where it is not set, a Slurm job still has no right to more than it was given.
    """
    if (cuda := environment.get(CUDA)) is not None:
        return usable_gpus(cuda, gpus)
    for name in SLURM_GLOBAL:
        if given := environment.get(name, "").strip():
            return _given(given, gpus)
    own = environment.get(SLURM_OWN, "").strip()
    return usable_gpus(own, gpus) if own else tuple(gpus)


def _given(text: str, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Slurm numbers the node's GPUs; where it shows a job no others, the driver numbers those anew from 0."""
    numbers = _numbers(text)
    wholes = {gpu.index for gpu in gpus}
    if numbers and len(wholes) <= len(numbers):
        return tuple(gpus)
    return usable_gpus(",".join(map(str, numbers)), gpus)


def _numbers(text: str) -> list[int]:
    """Of a list such as `0,2-3`; what is no number is left out."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found += range(int(first), int(last or first) + 1)
    return found
