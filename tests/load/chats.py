"""Chat events at their times, folded into a record."""

from deploytui.record.trace import RequestRecord
from tests.load.replay import HEAD, delta, event, fold

MS = 1_000_000


def timed(*events: tuple[int, bytes]) -> RequestRecord:
    """The record of events at their times [ms]; the head comes with the first."""
    first, *rest = events
    reads = [(first[0] * MS, HEAD + first[1]), *((at * MS, data) for at, data in rest)]
    return fold(reads).record()


def content(text: str, finish_reason: str | None = None) -> bytes:
    return event(data=delta(finish_reason, content=text))


def usage(completion: int, prompt: int = 9, **more: object) -> dict[str, object]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, **more}
