"""The open loop: each request leaves at its time, whatever became of those before it."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

from deploytui.load.course import Course
from deploytui.load.exchange import User
from deploytui.load.render import Talk
from deploytui.load.trouble import LoadError
from deploytui.units import NS

EARLY_NS = 1_000
"""A timer may be so early that it would have to be set once more for nothing [ns]."""


class Pool:
    """Connections of an open loop, each with at most one request under way: idle ones are used before new ones."""

    def __init__(self, new_user: Callable[[int], User], opened: Sequence[User]) -> None:
        self._new_user = new_user
        self._users = list(opened)
        self._idle = list(self._users)

    def take(self) -> User:
        """A user without a request; it connects when it asks if none is idle."""
        if self._idle:
            return self._idle.pop()  # the one used last: a server closes those that are idle for long
        user = self._new_user(len(self._users))
        self._users.append(user)
        return user

    def give_back(self, user: User) -> None:
        """Its request is over."""
        self._idle.append(user)

    def leave(self) -> None:
        """Let go of all connections."""
        for user in self._users:
            user.leave()


def scheduled(talks: Sequence[Talk]) -> list[Talk]:
    """The talks in the order in which their first turns shall leave; raises LoadError where one has no time."""
    timeless = next((talk[0].id for talk in talks if talk[0].at_s is None), None)
    if timeless is not None:
        raise LoadError(f"The prompt {timeless} has no time to leave at.", fix="Give each line of the prompts an at_s.")
    return sorted(talks, key=_at_s)


def _at_s(talk: Talk) -> float:
    return talk[0].at_s or 0.0


class OpenLoop:
    """Sends talks, given in the order of their times, by the clock: one timer, for the next that is due."""

    def __init__(self, course: Course, pool: Pool, talks: Sequence[Talk], start_ns: int) -> None:
        self._course, self._pool, self._start_ns = course, pool, start_ns
        self._due = deque((start_ns + round(_at_s(talk) / NS), talk) for talk in talks)
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Until all is answered."""
        all_sent = self._loop.create_future()
        try:
            async with asyncio.TaskGroup() as group:
                self._send_due(group, all_sent)
                try:
                    await all_sent
                finally:
                    self._due.clear()
        finally:
            self._pool.leave()

    def _send_due(self, group: asyncio.TaskGroup, all_sent: asyncio.Future[None]) -> None:
        due = self._due
        while due and due[0][0] <= time.monotonic_ns() + EARLY_NS:
            group.create_task(self._hold(*due.popleft()))
        if due:
            self._loop.call_at(due[0][0] * NS, self._send_due, group, all_sent)
        elif not all_sent.done():
            all_sent.set_result(None)

    async def _hold(self, scheduled_ns: int, talk: Talk) -> None:
        """Ask the first turn now and each other when the one before is answered, not before its own time."""
        user = self._pool.take()
        for turn, request in enumerate(talk):
            if turn:
                scheduled_ns = await self._turn(request.at_s)
            if self._course.over:
                return
            asking = self._course.begin(user, request, scheduled_ns)
            self._course.finish(asking, await user.ask(request))
        self._pool.give_back(user)

    async def _turn(self, at_s: float | None) -> int:
        """Wait for the time of a later turn; gives it [ns]."""
        now_ns = time.monotonic_ns()
        due_ns = max(now_ns, self._start_ns + round((at_s or 0.0) / NS))
        if due_ns > now_ns:
            await asyncio.sleep((due_ns - now_ns) * NS)
        return due_ns
