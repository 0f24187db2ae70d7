"""The objective orders the accepted; a difference inside the margin is a tie."""

from math import inf

from msgspec import Struct

from deploytui.compare.statistics import Interval, overlap
from deploytui.decide.figures import Figure, figure
from deploytui.decide.subject import Subject, baseline_name
from deploytui.profile.schema import Profile
from deploytui.record.state import SessionState

LOWER_IS_BETTER = ("ttft_ms", "tpot_ms", "e2e_ms", "cost_per_mtok", "peak_gpu_gib", "peak_host_gib")
SINGLE_MARGIN = 0.01
"""Figures measured once that are this near each other, as a share, are no difference."""


class Ranking(Struct, frozen=True, kw_only=True):
    """The accepted, best first; `winner` None in a tie, or where the objective was not measured."""

    order: tuple[str, ...] = ()
    winner: str | None = None
    tie: tuple[str, ...] = ()
    recommended: str | None = None
    figures: dict[str, Figure] = {}


def objective_of(profile: Profile, state: SessionState) -> str:
    """The metric that orders; by default throughput, at the edge the memory that is scarce there."""
    if profile.objective is not None:
        return profile.objective
    if profile.form != "edge":
        return "output_tok_s"
    return "peak_gpu_gib" if state.environment is not None and state.environment.gpus else "peak_host_gib"


def ranked(accepted: tuple[Subject, ...], objective: str) -> Ranking:
    """The accepted in the objective's order; those without the figure come last and tie with all."""
    if not accepted:
        return Ranking()
    lower = objective.partition(".")[0] in LOWER_IS_BETTER
    figures = {subject.name: figure(subject, objective) for subject in accepted}
    order = tuple(sorted(figures, key=lambda name: _rank(figures[name], lower)))
    tie = tuple(name for name in order if _level(figures[order[0]], figures[name]))
    if len(tie) == 1:
        return Ranking(order=order, winner=order[0], recommended=order[0], figures=figures)
    level = tuple(subject for name in tie for subject in accepted if subject.name == name)
    return Ranking(order=order, tie=tie, recommended=_recommended(level), figures=figures)


def _rank(found: Figure, lower: bool) -> float:
    if found.value is None:
        return inf
    return found.value if lower else -found.value


def _level(best: Figure, other: Figure) -> bool:
    """Whether a figure can't be told from the best one."""
    if best.value is None or other.value is None:
        return True
    return best == other or overlap(_margin(best, best.value), _margin(other, other.value))


def _margin(found: Figure, value: float) -> Interval:
    half = abs(value) * SINGLE_MARGIN / 2
    return found.interval or (value - half, value + half)


def _recommended(level: tuple[Subject, ...]) -> str:
    """The baseline, else less memory, else the shorter cold start, else the first."""
    names = [subject.name for subject in level]
    baseline = baseline_name(level[0].profile, level[0].state)
    if baseline in names:
        return str(baseline)
    for metric in ("peak_gpu_gib", "peak_host_gib", "cold_start_s"):
        values = [figure(subject, metric).value for subject in level]
        known = [value for value in values if value is not None]
        if len(known) == len(values) and min(known) < max(known) * (1 - SINGLE_MARGIN):
            return names[known.index(min(known))]
    return names[0]
