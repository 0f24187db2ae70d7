"""The closed loop: a fixed number of users, each asks its next question when the last one is answered."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence

from deploytui.load.course import Course
from deploytui.load.exchange import User
from deploytui.load.orders import LoadOrder
from deploytui.load.patience import ask_patiently
from deploytui.load.render import Request, Talk


async def closed_loop(course: Course, order: LoadOrder, users: Sequence[User], talks: Sequence[Talk]) -> None:
    """Have all talks held: each by one user, its turns in their order."""
    waiting = deque(talks)
    async with asyncio.TaskGroup() as group:
        for user in users:
            group.create_task(_one(course, order, user, waiting))


async def _one(course: Course, order: LoadOrder, user: User, waiting: deque[Talk]) -> None:
    thinks = False
    try:
        for request in _requests(waiting):
            if thinks:
                await asyncio.sleep(order.think_time_s)
            if course.over:
                return
            await ask_patiently(course, course.begin(user, request), order.request_timeout_s)
            thinks = order.think_time_s > 0
    finally:
        user.leave()


def _requests(waiting: deque[Talk]) -> Iterator[Request]:
    """One talk after the other, as long as some wait."""
    while waiting:
        yield from waiting.popleft()
