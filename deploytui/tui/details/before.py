"""What came before a launch and after the load: the fit that was expected beside what was measured, preparations, and
how the engine bore what it had to.
"""

from collections.abc import Iterable

from deploytui.record.before import CHECKS
from deploytui.record.facts import Fit, MemoryUse, Preparation, RecoveryCheck
from deploytui.record.state import CandidateState
from deploytui.tui.details.live import labelled
from deploytui.tui.figures import MISSING, size
from deploytui.tui.pieces import Line, Piece, Tone, line
from deploytui.tui.plain import visible

VERDICTS: dict[str, tuple[str, Tone]] = {
    "fits": ("fits", "good"),
    "may_not_fit": ("may not fit", "warn"),
    "cannot_fit": ("cannot fit", "bad"),
    "unknown": ("not known", "dim"),
}


def before_lines(candidate: CandidateState) -> Iterable[Line]:
    """The expected and the measured memory, then what was prepared, then what it recovered from."""
    if candidate.fit is not None:
        yield from fit_lines(candidate.fit, candidate.memory)
    for made in candidate.preparations:
        yield preparation_line(made)
    for check in candidate.recovery:
        yield recovery_line(check)


def fit_lines(fit: Fit, memory: MemoryUse | None) -> Iterable[Line]:
    """The verdict with its parts; the measured peak beside it once there is one."""
    word, style = VERDICTS[fit.verdict]
    parts = (("weights", fit.weights_bytes), ("KV cache", fit.kv_cache_bytes), ("overhead", fit.overhead_bytes))
    told = " + ".join(f"{name} {size(count)}" for name, count in parts if count is not None)
    free = f" of {size(fit.free_bytes)} free" if fit.free_bytes is not None else ""
    each = f" on each of {fit.devices}" if fit.devices > 1 else ""
    needed = f"  {size(fit.needed_bytes)}{free}{each}" if fit.needed_bytes is not None else ""
    yield labelled("fit", Piece(word, style), needed)
    if told:
        yield labelled("", Piece(told, "dim"))
    if fit.why:
        yield labelled("", Piece(visible(fit.why), "dim"))
    measured = _measured(fit, memory)
    if measured is not None:
        yield labelled("", f"measured {size(measured)} at its peak")


def _measured(fit: Fit, memory: MemoryUse | None) -> int | None:
    if memory is None:
        return None
    return memory.peak_gpu_bytes if fit.on == "gpu" else memory.peak_host_bytes


def preparation_line(made: Preparation) -> Line:
    """What was built, how long that took, and whether it was found done."""
    built = "" if made.seconds is None else f"built in {made.seconds:.1f} s"
    parts = ("reused" if made.reused else "", built, size(made.output_bytes))
    told = " · ".join(part for part in parts if part and part != MISSING)
    return labelled("prepared", visible(made.name), Piece(f"  {told}", "dim"))


def recovery_line(check: RecoveryCheck) -> Line:
    """Whether it served on, and when its KV cache was empty again."""
    mark = Piece("✔ ", "good") if check.answers else Piece("✘ ", "bad")
    after = "" if check.seconds is None else f" after {check.seconds:.1f} s"
    said = f"serves again{after}" if check.answers else "does not answer any more"
    idle = {True: ", KV cache idle again", False: ", KV cache not given back", None: ""}[check.kv_idle]
    note = f"  {check.note}" if check.note else ""
    about = f"{CHECKS[check.name]}: {said}{idle}"
    return line(*labelled("recovery", mark), about, Piece(visible(note), "dim"))
