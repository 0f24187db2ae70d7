"""The plan: a list of steps that the runner walks; order, sweep, drift check and resume are only data in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from deploytui.profile.rules import sweep
from deploytui.profile.schema import Profile
from deploytui.record.keys import StepKey
from deploytui.record.planned import PlannedStep

Order = Literal["grouped", "interleaved"]


def run_order(profile: Profile, names: Sequence[str]) -> tuple[str, ...]:
    """The candidates among `names` in the order they are measured: the baseline first, then as in the profile."""
    listed = [candidate.name for candidate in profile.candidates if candidate.name in names]
    return tuple(sorted(listed, key=lambda name: name != profile.baseline))


def plan_steps(
    profile: Profile,
    names: Sequence[str],
    *,
    order: Order = "grouped",
    drift_check: bool = False,
    items: Mapping[str, int] | None = None,
) -> tuple[PlannedStep, ...]:
    """All steps of the candidates in `names`, in order; `items` are the requests of each quality task, if known.

    Grouped: every repeat and task inside one launch. Interleaved: a launch a repeat, A B B A.
    """
    ordered = run_order(profile, names)
    steps = [*(_grouped if order == "grouped" else _interleaved)(profile, ordered, items or {})]
    if drift_check and ordered:
        again = 1 + max(step.key.launch for step in steps)
        steps.append(PlannedStep(key=StepKey(ordered[0], launch=again, repeat=0), requests=profile.workload.requests))
    return tuple(steps)


def remaining(steps: Sequence[PlannedStep], finished: frozenset[StepKey]) -> tuple[PlannedStep, ...]:
    """The steps that are not safe on disk yet."""
    return tuple(step for step in steps if step.key not in finished)


def _grouped(profile: Profile, names: Sequence[str], items: Mapping[str, int]) -> Iterator[PlannedStep]:
    for name in names:
        for repeat in range(profile.workload.repeats):
            yield from _repeat(profile, name, 0, repeat)
        yield from _tasks(profile, name, items)


def _interleaved(profile: Profile, names: Sequence[str], items: Mapping[str, int]) -> Iterator[PlannedStep]:
    for launch in range(profile.workload.repeats):
        for name in names if launch % 2 == 0 else reversed(names):
            yield from _repeat(profile, name, launch, launch)
            if launch == 0:
                yield from _tasks(profile, name, items)


def _repeat(profile: Profile, name: str, launch: int, repeat: int) -> Iterator[PlannedStep]:
    """One repeat at every point of the sweep."""
    for point in range(len(sweep(profile.workload.load) or (0,))):
        yield PlannedStep(key=StepKey(name, launch, point, repeat), requests=profile.workload.requests)


def _tasks(profile: Profile, name: str, items: Mapping[str, int]) -> Iterator[PlannedStep]:
    """The quality tasks of the first launch."""
    for task in profile.quality.tasks:
        yield PlannedStep(key=StepKey(name, task=task), requests=items.get(task, 0))
