"""One user's requests, one after the other, over a connection that is kept between them."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from deploytui.load.answer import Answer
from deploytui.load.render import Request
from deploytui.load.wire import Connection

AFTER_DONE_S = 0.25
"""How long a server may take behind `[DONE]` to end the response, before its connection is given up [s]."""

Connect = Callable[[], Awaitable[Connection]]


class User:
    """One simulated user, with at most one request under way."""

    def __init__(self, number: int, connect: Connect, *, timeout_s: float, keep_text: bool = False) -> None:
        self.number = number
        self.under_way: Answer | None = None
        """The answer that is coming in; None between requests."""
        self._connect = connect
        self._timeout_s = timeout_s
        self._keep_text = keep_text
        self._kept: Connection | None = None

    async def ask(self, request: Request) -> Answer:
        """Send a request and take in its whole answer; what goes wrong is in the answer, not raised."""
        kept, self._kept = self._kept, None
        if kept is not None and kept.quiet:
            answer = await self._exchange(kept, request)
            if not answer.unanswered:
                return answer
        elif kept is not None:
            kept.close()
        return await self._ask_afresh(request, reconnected=kept is not None)

    def leave(self) -> None:
        """Let go of the connection."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    async def _ask_afresh(self, request: Request, *, reconnected: bool) -> Answer:
        begin = time.monotonic_ns()
        try:
            async with asyncio.timeout(self._timeout_s):
                wire = await self._connect()
        except OSError as error:  # running out of time is one, too
            answer = self._answer(request, sent_ns=begin, reconnected=reconnected)
            answer.fail("connect", str(error) or f"no connection within {self._timeout_s:g} s", time.monotonic_ns())
            return answer
        return await self._exchange(wire, request, connect_ns=wire.connect_ns, reconnected=reconnected)

    async def _exchange(
        self, wire: Connection, request: Request, *, connect_ns: int | None = None, reconnected: bool = False
    ) -> Answer:
        sent_ns = wire.send(request.content)
        answer = self._answer(request, sent_ns=sent_ns, connect_ns=connect_ns, reconnected=reconnected)
        self.under_way = answer
        try:
            await _take_in(wire, answer, self._timeout_s)
        finally:
            self.under_way = None
            if answer.reusable:
                self._kept = wire
            else:
                wire.close()
        return answer

    def _answer(self, request: Request, *, sent_ns: int, reconnected: bool, connect_ns: int | None = None) -> Answer:
        return Answer(
            id=request.id,
            user=self.number,
            sent_ns=sent_ns,
            connect_ns=connect_ns,
            reconnected=reconnected,
            keep_text=self._keep_text,
        )


async def _take_in(wire: Connection, answer: Answer, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s) as limit:
            await _read_all(wire, answer, limit)
    except OSError as error:
        if limit.expired():
            answer.fail("timeout", f"the answer was not complete within {timeout_s:g} s", time.monotonic_ns())
        else:
            answer.fail("reset", f"the connection broke: {error}", time.monotonic_ns())


async def _read_all(wire: Connection, answer: Answer, limit: asyncio.Timeout) -> None:
    hurried = False
    while not answer.over:
        read = await wire.read()
        if read.data:
            answer.clocks.add(read.clock)
            answer.read(read.data, read.at_ns)
        else:
            answer.eof(read.at_ns)
        if answer.done_ns is not None and not hurried:
            hurried = True
            soon = asyncio.get_running_loop().time() + AFTER_DONE_S
            limit.reschedule(min(soon, limit.when() or soon))
