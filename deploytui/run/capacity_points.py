"""The loads of a search: numbered as they are first asked for, the same for every candidate, with prompts made then."""

import dataclasses
from dataclasses import dataclass, field
from math import ceil

from anyio import to_thread
from msgspec.structs import replace

from deploytui.plan.parts import measured_part
from deploytui.plan.workload import draw, workload_key
from deploytui.profile.schema import Profile, Workload
from deploytui.record.capacity import Search
from deploytui.record.events import Planned
from deploytui.record.keys import StepKey
from deploytui.record.metrics import RepeatSample
from deploytui.record.planned import PlannedPoint, PlannedStep
from deploytui.run.bench import Bench
from deploytui.run.capacity_ask import searched_load
from deploytui.run.context import Context
from deploytui.run.measuring import measure_repeat
from deploytui.run.prompting import part_path, write_part
from deploytui.run.recorder import now_ns

ROUNDS = 4
"""How often every user, or all that are in flight at a rate, is to be replaced within a repeat."""


@dataclass
class Points:
    """All loads that any candidate of the session was asked for so far."""

    profile: Profile
    search: Search
    planned: Planned
    """As it was said last."""
    dataset_sha256: str | None = None
    places: list[float] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    """Per repeat, of each place."""

    def number(self, asked: float, e2e_s: float | None) -> int:
        """The point's number; `e2e_s` is how long a request takes, which tells how many a rate keeps in flight."""
        if asked not in self.places:
            in_flight = asked if self.search.by == "concurrency" else asked * (e2e_s or 0.0)
            self.places.append(asked)
            self.requests.append(max(self.profile.workload.requests, ceil(ROUNDS * in_flight)))
        return self.places.index(asked)

    def workload(self, point: int) -> Workload:
        """The workload of a point, its load a list of all points so that their numbers fit."""
        own = self.profile.workload
        load = searched_load(own.load, self.search.by, tuple(self.places))
        return replace(own, load=load, decide_at=None, requests=self.requests[point])

    def listed(self) -> tuple[PlannedPoint, ...]:
        """The points as the plan tells them."""
        return tuple(
            PlannedPoint(
                point=point,
                by=self.search.by,
                asked=asked,
                workload_key=workload_key(
                    replace(self.profile, workload=self.workload(point)), self.dataset_sha256, point=point
                ),
            )
            for point, asked in enumerate(self.places)
        )

    def with_step(self, step: PlannedStep) -> Planned:
        """The plan with one more step."""
        self.planned = replace(self.planned, at_ns=now_ns(), points=self.listed(), steps=(*self.planned.steps, step))
        return self.planned


async def measure_point(ctx: Context, bench: Bench, points: Points, key: StepKey) -> RepeatSample:
    """One repeat of one load: planned if it was not, its prompts made if they were not, then measured as any."""
    here = at_point(ctx, points, key.point)
    step = PlannedStep(key=key, requests=here.profile.workload.requests)
    if step not in points.planned.steps:
        ctx.recorder.say(points.with_step(step))
    await _prompts(ctx, here.profile.workload, key)
    return await measure_repeat(here, bench, step)


def at_point(ctx: Context, points: Points, point: int) -> Context:
    """The context with the workload of a point."""
    return dataclasses.replace(ctx, profile=replace(ctx.profile, workload=points.workload(point)))


async def _prompts(ctx: Context, workload: Workload, key: StepKey) -> None:
    """Make the prompts of a repeat at a point, with the first engine's calibration; once for all candidates."""
    assert ctx.prompts is not None, "the warm-up's prompts come first"
    assert key.repeat is not None
    part = measured_part(workload, key.point, key.repeat)
    made = str(part_path(ctx.folder, part.name).relative_to(ctx.folder.path))
    if any(file.path == made for file in ctx.prompts.files):
        return
    file = await to_thread.run_sync(write_part, ctx.folder, workload, part, ctx.calibration, ctx.inputs)
    files = (*ctx.prompts.files, file)
    ctx.prompts = replace(ctx.prompts, at_ns=now_ns(), files=files, draw=draw([one.sha256 for one in files]))
    ctx.recorder.say(ctx.prompts)
