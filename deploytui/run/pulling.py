"""The pull of a candidate's image, a part of what is downloaded: outside of it, `run` would do it unseen."""

import re
import time
from collections import deque
from collections.abc import Iterable

import anyio

from deploytui.engine.container import pull
from deploytui.engine.failures import last_words
from deploytui.profile.schema import Candidate, Container
from deploytui.record.events import Progress
from deploytui.record.facts import Failure
from deploytui.run.children import child, lines, marked
from deploytui.run.context import Context
from deploytui.run.failing import CandidateFailed, too_long
from deploytui.run.recorder import now_ns

NOTE_S = 0.5
"""Between two progress events [s]."""
GRACE_S = 2.0
KEPT_LINES = 40
LINE_LENGTH = 200

_LAYER = re.compile(r"^(?:Copying (?:blob|config) (?:sha256:)?)?(?P<id>[0-9a-f]{6,64})(?::\s*|\s+|$)(?P<state>.*)")
_DONE = re.compile(r"pull complete|already exists|\bdone\b|skipped", re.IGNORECASE)
_BARRED = re.compile(r"unauthorized|denied|authentication required|no basic auth", re.IGNORECASE)


class Layers:
    """The layers of an image, as docker and podman tell of them line by line."""

    def __init__(self) -> None:
        self._done: dict[str, bool] = {}

    def hear(self, line: str) -> None:
        """Take in a line; one that is of no layer changes nothing."""
        if match := _LAYER.match(line.strip()):
            known = self._done.get(match["id"], False)
            self._done[match["id"]] = known or bool(_DONE.search(match["state"]))

    @property
    def done(self) -> int:
        """How many are here."""
        return sum(self._done.values())

    @property
    def total(self) -> int | None:
        """How many there are, as far as was told; None before any was."""
        return len(self._done) or None


async def pull_image(ctx: Context, candidate: Candidate) -> float:
    """Have the runtime fetch the candidate's image; how long that took [s]. CandidateFailed says why it could not."""
    assert candidate.container is not None
    began, limit_s = time.monotonic(), ctx.profile.timeouts.download
    async with ctx.phase(candidate.name, "downloading") as evidence:
        evidence["image"] = candidate.container.image
        with anyio.move_on_after(limit_s) as limit:
            await _pulled(ctx, candidate.name, candidate.container)
        if limit.cancelled_caught:
            raise CandidateFailed(too_long(f"The pull of the image {candidate.container.image}", "download", limit_s))
    return time.monotonic() - began


async def _pulled(ctx: Context, name: str, container: Container) -> None:
    said: deque[str] = deque(maxlen=KEPT_LINES)
    layers, told_s = Layers(), float("-inf")
    async with child(pull(container), env=marked(ctx.folder.id), errors=None, grace_s=GRACE_S) as process:
        async for raw in lines(process):
            line = raw.decode(errors="replace").strip()
            said.append(line)
            layers.hear(line)
            if (now_s := time.monotonic()) - told_s >= NOTE_S:
                told_s = now_s
                _tell(ctx, name, container, layers, line)
        code = await process.wait()
    _tell(ctx, name, container, layers, said[-1] if said else "")
    if code != 0:
        raise CandidateFailed(_refused(container, said))


def _tell(ctx: Context, name: str, container: Container, layers: Layers, line: str) -> None:
    text = f"{container.image}: {line}"[:LINE_LENGTH]
    ctx.recorder.say(
        Progress(at_ns=now_ns(), candidate=name, done=layers.done, total=layers.total, unit="layers", text=text)
    )


def _refused(container: Container, said: Iterable[str]) -> Failure:
    words = last_words(list(said), lines=3)
    barred = bool(_BARRED.search(words))
    again = (
        f"log in with `{container.runtime} login`" if barred else f"try `{container.runtime} pull {container.image}`"
    )
    return Failure(
        kind="gated" if barred else "download_failed",
        what=f"{container.runtime} could not pull the image {container.image}.",
        why=words,
        fix=f"Correct container.image, or {again}.",
    )
