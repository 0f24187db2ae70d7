"""The job of `capacity`: each candidate is launched once and its load walked up to where the gates are missed."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
from anyio import to_thread
from msgspec.structs import replace

from deploytui.decide.capacity import answer_at, decide_capacity, noted
from deploytui.decide.subject import subject
from deploytui.errors import DeployError
from deploytui.plan.capacity import TIME_UP, Answer, Ask, Over, Walk, search
from deploytui.plan.cases import planned_candidates
from deploytui.record.capacity import Capacity, Search
from deploytui.record.events import CapacityFound, Measured, Planned
from deploytui.record.keys import StepKey
from deploytui.record.metrics import RepeatSample
from deploytui.record.planned import PlannedStep
from deploytui.run.bench import Bench
from deploytui.run.capacity_ask import launch_profile
from deploytui.run.capacity_points import Points, at_point, measure_point
from deploytui.run.context import Context
from deploytui.run.failing import EngineDied
from deploytui.run.job import Job
from deploytui.run.measuring import pooled_metrics
from deploytui.run.prepare import Prepared
from deploytui.run.recorder import now_ns

INTERRUPTED = "The search was interrupted."
DIED = "The engine ended at this load."


def capacity_job(prepared: Prepared, asked: Search) -> tuple[Prepared, Job]:
    """The session and the job that search every candidate's capacity."""
    points = first_points(prepared, asked)
    hunt = Hunt(points, asked.budget_s)
    launching = dataclasses.replace(prepared, profile=launch_profile(prepared.profile))
    return launching, Job(planned=lambda _: points.planned, measure=hunt.measure, judge=decide_capacity)


def first_points(prepared: Prepared, asked: Search) -> Points:
    """The plan before anything is known: every candidate begins at the lowest load."""
    profile = prepared.profile
    names = [candidate.name for candidate in profile.candidates]
    empty = Planned(at_ns=now_ns(), candidates=planned_candidates(profile, names), steps=(), workload_key="")
    points = Points(profile, asked, empty, prepared.inputs.dataset_sha256)
    point = points.number(asked.lowest, None)
    points.planned = replace(
        empty,
        steps=tuple(PlannedStep(key=StepKey(name, repeat=0), requests=points.requests[point]) for name in names),
        points=points.listed(),
        workload_key=points.listed()[point].workload_key,
        search=asked,
    )
    return points


@dataclass
class Hunt:
    """Searches one candidate after the other."""

    points: Points
    left_s: float | None
    """Of the time to measure in, for all candidates still to come."""
    pool: list[RepeatSample] = field(default_factory=list)
    """The repeats of the point that is measured."""

    async def measure(self, ctx: Context, bench: Bench, _: Sequence[PlannedStep]) -> None:
        """Walk one candidate's load; what is known is journalled however the walk ends."""
        began, share_s = time.monotonic(), self._share_s(ctx)
        walk = search(self.points.search)
        try:
            capacity = await self._walked(ctx, bench, walk, None if share_s is None else began + share_s)
        except DeployError as error:
            if not ctx.row(bench.candidate.name).measured:
                raise
            capacity = _cut(walk, error.text())
        except EngineDied:
            self._say(ctx, bench, _ended(walk, Answer(held=False, hopeless=True, why=DIED, over=DIED)))
            raise
        except anyio.get_cancelled_exc_class():
            self._say(ctx, bench, _cut(walk, INTERRUPTED))
            raise
        finally:
            if self.left_s is not None:
                self.left_s = max(0.0, self.left_s - (time.monotonic() - began))
        self._say(ctx, bench, capacity)

    def _share_s(self, ctx: Context) -> float | None:
        """An even share of the time that is left."""
        waiting = sum(row.phase != "done" for row in ctx.recorder.state.candidates.values())
        return None if self.left_s is None else self.left_s / max(waiting, 1)

    async def _walked(self, ctx: Context, bench: Bench, walk: Walk, until_s: float | None) -> Capacity:
        ask = next(walk)
        while True:
            await ctx.halt.go.wait()
            left_s = None if until_s is None else max(0.0, until_s - time.monotonic())
            answer = None
            if left_s != 0.0:
                with anyio.move_on_after(left_s):
                    answer = await self._answer(ctx, bench, ask)
            if answer is None:
                return _cut(walk, TIME_UP)
            try:
                ask = walk.send(answer)
            except StopIteration as done:
                return _returned(done)

    async def _answer(self, ctx: Context, bench: Bench, ask: Ask) -> Answer:
        """Measure what is asked and say what all repeats of the point tell."""
        name = bench.candidate.name
        point = self.points.number(ask.asked, _e2e_s(ctx, name))
        if ask.repeat == 0:
            self.pool = []
        self.pool.append(await measure_point(ctx, bench, self.points, StepKey(name, point=point, repeat=ask.repeat)))
        here = at_point(ctx, self.points, point)
        metrics = await to_thread.run_sync(pooled_metrics, here, point, self.pool)
        ctx.recorder.say(Measured(at_ns=now_ns(), candidate=name, point=point, metrics=metrics))
        return answer_at(replace(subject(here.profile, ctx.recorder.state, name), point=point))

    def _say(self, ctx: Context, bench: Bench, capacity: Capacity) -> None:
        name = bench.candidate.name
        known = [point.asked for point in capacity.tried]
        at = capacity.value if capacity.value is not None else min(known, default=None)
        one = subject(ctx.profile, ctx.recorder.state, name)
        ctx.recorder.say(
            CapacityFound(
                at_ns=now_ns(),
                candidate=name,
                point=None if at is None else self.points.number(at, None),
                capacity=noted(one, capacity),
            )
        )


def _e2e_s(ctx: Context, name: str) -> float | None:
    """How long a request takes under the lowest load [s]; None before that is known."""
    first = ctx.row(name).measured.get(0)
    return first.e2e.mean if first else None


def _cut(walk: Walk, why: str) -> Capacity:
    """What a walk knows that can't go on."""
    try:
        walk.throw(Over(why))
    except StopIteration as done:
        return _returned(done)
    raise AssertionError("a walk that is over returns")


def _ended(walk: Walk, last: Answer) -> Capacity:
    """What a walk knows with its last answer."""
    try:
        walk.send(last)
    except StopIteration as done:
        return _returned(done)
    raise AssertionError("a walk whose answer says that it is over returns")


def _returned(done: StopIteration) -> Capacity:
    found: Capacity = done.value
    return found
