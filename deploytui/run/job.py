"""What a session does: its plan, what it measures of each candidate, how it decides."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from deploytui.decide.subject import decided_point
from deploytui.plan.cases import planned_candidates
from deploytui.plan.points import planned_points
from deploytui.plan.steps import plan_steps
from deploytui.record.events import Planned
from deploytui.record.planned import PlannedStep
from deploytui.run.bench import Bench
from deploytui.run.context import Context, Judge, decide
from deploytui.run.measuring import measure_steps
from deploytui.run.prepare import Prepared
from deploytui.run.recorder import now_ns

Measure = Callable[[Context, Bench, Sequence[PlannedStep]], Awaitable[None]]
"""Measures a candidate that serves: at least the steps that were planned for its launch."""


@dataclass(frozen=True)
class Job:
    """A command that launches candidates."""

    planned: Callable[[Prepared], Planned]
    measure: Measure
    judge: Judge


def planned_run(prepared: Prepared) -> Planned:
    """The plan of an ordinary run: every repeat at every point, then the quality tasks."""
    profile, inputs = prepared.profile, prepared.inputs
    names = [candidate.name for candidate in profile.candidates]
    points = planned_points(profile, dataset_sha256=inputs.dataset_sha256, trace_sha256=inputs.trace_sha256)
    decided = decided_point(profile.workload)
    return Planned(
        at_ns=now_ns(),
        candidates=planned_candidates(profile, names),
        steps=plan_steps(profile, names, items=prepared.items),
        workload_key=points[decided or 0].workload_key,
        points=points,
        decided_point=decided,
    )


RUN = Job(planned=planned_run, measure=measure_steps, judge=decide)
