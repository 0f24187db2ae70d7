"""What came before a launch and after the load, in a few words each for the plain view and the table: whether a model
was to fit, what was prepared of it, how its engine bore what it had to. Pure.
"""

from collections.abc import Iterable, Sequence

from deploytui.record.facts import Fit, MemoryUse, Preparation, RecoveryCheck
from deploytui.units import size

CHECKS = {
    "over_long_prompt": "an over-long prompt",
    "client_abort": "clients that hang up",
    "burst": "a burst above its capacity",
}
VERDICTS = {"fits": "fits", "may_not_fit": "may not fit", "cannot_fit": "cannot fit", "unknown": "not known"}


def fit_phrase(fit: Fit | None, memory: MemoryUse | None = None) -> str:
    """Such as `fits, 277 MiB expected of 21.8 GiB free on the host, 278 MiB measured`; empty where nothing is known."""
    if fit is None or fit.needed_bytes is None:
        return ""
    free = f" of {size(fit.free_bytes)} free" if fit.free_bytes is not None else ""
    where = f"on each of {fit.devices} GPUs" if fit.devices > 1 else "on the GPU" if fit.on == "gpu" else "on the host"
    peak = None if memory is None else memory.peak_gpu_bytes if fit.on == "gpu" else memory.peak_host_bytes
    measured = f", {size(peak)} measured" if peak is not None else ""
    return f"{VERDICTS[fit.verdict]}, {size(fit.needed_bytes)} expected{free} {where}{measured}"


def preparation_phrase(made: Preparation) -> str:
    """Such as `onnx int4, built in 27.4 s, 86 MiB, reused`; what nobody wrote down is left out."""
    parts = (
        made.name,
        "" if made.seconds is None else f"built in {made.seconds:.1f} s",
        "" if made.output_bytes is None else size(made.output_bytes),
        "reused" if made.reused else "",
    )
    return ", ".join(part for part in parts if part)


def recovery_phrase(check: RecoveryCheck) -> str:
    """Such as `after a burst above its capacity it serves again, 0.4 s later`."""
    later = "" if check.seconds is None else f", {check.seconds:.1f} s later"
    idle = {True: ", its KV cache idle", False: ", its KV cache not given back", None: ""}[check.kv_idle]
    if check.answers:
        return f"after {CHECKS[check.name]} it serves again{later}{idle}"
    return f"after {CHECKS[check.name]} it serves no more" + (f": {check.note}" if check.note else "")


def before_phrases(
    fit: Fit | None, memory: MemoryUse | None, prepared: Sequence[Preparation], recovery: Iterable[RecoveryCheck]
) -> tuple[str, ...]:
    """A line each for memory, preparations and recovery, with a word before it; none for what is not known."""
    parts = (
        ("prepared", "; ".join(map(preparation_phrase, prepared))),
        ("memory", fit_phrase(fit, memory)),
        ("recovery", "; ".join(map(recovery_phrase, recovery))),
    )
    return tuple(f"{label}: {said}" for label, said in parts if said)
