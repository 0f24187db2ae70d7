"""The closed loop's answer to a server that has too much to do: to ask again when it wishes."""

import asyncio
import re
import time

from deploytui.load.answer import Answer
from deploytui.load.course import TOO_MANY, Asking, Course

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 4.0
"""Where the server does not say when, the waits double from the first up to this [s]."""
SHORTEST_WAIT_S = 0.05
"""However soon the server wants to be asked again [s]."""

_SECONDS = re.compile(r"\d{1,9}(\.\d*)?", re.ASCII)


async def ask_patiently(course: Course, asking: Asking, limit_s: float) -> None:
    """Ask until the request is answered; while it is refused, again as the server wishes.

    The clock of the request starts anew with each try. No try begins later than `limit_s` after the first one: the
    refusal is then its answer.
    """
    deadline, tries = time.monotonic() + limit_s, 0
    while True:
        answer = await asking.user.ask(asking.request)
        wait_s = _wait_s(answer, tries)
        if wait_s is None or time.monotonic() + wait_s >= deadline:
            course.finish(asking, answer)
            return
        course.refused += 1
        asking.refused, tries = answer, tries + 1
        await asyncio.sleep(wait_s)


def _wait_s(answer: Answer, tries: int) -> float | None:
    """How long to wait before the next try [s]; None when there shall be none."""
    if answer.status != TOO_MANY:
        return None
    asked_s = retry_after_s(answer.retry_after, time.time())
    return min(FIRST_WAIT_S * 2**tries, LONGEST_WAIT_S) if asked_s is None else max(asked_s, SHORTEST_WAIT_S)


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """The wait that a Retry-After header asks for, a number of seconds or a date [s]; None where it says neither."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    from email.utils import parsedate_to_datetime  # takes long to load, and nearly no server says a date

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now_s)
    except ValueError:
        return None
