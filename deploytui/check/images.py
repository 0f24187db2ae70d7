"""Whether the image of a candidate's container is here."""

from collections.abc import Awaitable, Callable

from deploytui.engine.container import image_probe, runtime_failure
from deploytui.engine.failures import explain_log
from deploytui.engine.protocol import Probe, Probed
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure


async def missing_image(
    candidate: Candidate, ask: Callable[[Probe], Awaitable[Probed]]
) -> tuple[str | None, Failure | None]:
    """The image that has to be pulled first, None when it is here or nobody has to pull any; or why nobody can tell.

    Without a look, the first command in the image would fetch it, unseen and within the time of a probe.
    """
    container = candidate.container
    if container is None or runtime_failure(candidate) is not None:
        return None, None
    probe = image_probe(container)
    probed = await ask(probe) if probe is not None else None
    if probed is None or probed.found:
        return None, None
    failure = explain_log([probed.error])
    if failure is not None and failure.kind == "broken_install":
        return None, failure
    return container.image, None


def pulled_first(image: str) -> str:
    """What to know of a candidate with such an image."""
    return f"The image {image} is not here: it is pulled first, and what is in it can only be asked then."
