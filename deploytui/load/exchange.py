"""One user's requests, one after the other, over a connection that is kept between them."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from deploytui.load.answer import Answer
from deploytui.load.loop import catch_up
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
        self.reconnects = 0
        """Kept connections that had to be replaced."""
        self._connect = connect
        self._timeout_s = timeout_s
        self._keep_text = keep_text
        self._kept: Connection | None = None
        self._fresh = False
        """Whether the kept connection has carried no request yet."""

    @property
    def connected(self) -> bool:
        """Whether a connection is open between requests."""
        return self._kept is not None

    async def connect(self) -> None:
        """Open the connection beforehand; where that fails, the first request will say why."""
        try:
            async with asyncio.timeout(self._timeout_s):
                self._kept = await self._connect()
                self._fresh = True
        except OSError:
            self._kept = None

    async def ask(self, request: Request) -> Answer:
        """Send a request and take in its whole answer; what goes wrong is in the answer, not raised."""
        kept, self._kept = self._kept, None
        fresh, self._fresh = self._fresh, False
        if kept is not None and kept.quiet:
            answer = await self._exchange(kept, request, connect_ns=kept.connect_ns if fresh else None)
            if not answer.unanswered:
                return answer
        elif kept is not None:
            kept.close()
        self.reconnects += kept is not None
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
            answer = self._answer(request, reconnected=reconnected)
            answer.sent_ns = begin
            answer.fail("connect", str(error) or f"no connection within {self._timeout_s:g} s", time.monotonic_ns())
            return answer
        return await self._exchange(wire, request, connect_ns=wire.connect_ns, reconnected=reconnected)

    async def _exchange(
        self, wire: Connection, request: Request, *, connect_ns: int | None = None, reconnected: bool = False
    ) -> Answer:
        answer = self._answer(request, connect_ns=connect_ns, reconnected=reconnected)
        self.under_way = answer
        try:
            wire.ask(answer, request.content)
            await _take_in(wire, answer, self._timeout_s)
        finally:
            self.under_way = None
            if answer.reusable:
                self._kept = wire
            else:
                wire.close()
        return answer

    def _answer(self, request: Request, *, reconnected: bool, connect_ns: int | None = None) -> Answer:
        return Answer(
            id=request.id,
            user=self.number,
            sent_ns=0,
            connect_ns=connect_ns,
            reconnected=reconnected,
            keep_text=self._keep_text,
        )


async def _take_in(wire: Connection, answer: Answer, timeout_s: float) -> None:
    loop = asyncio.get_running_loop()
    limit = loop.call_later(timeout_s, _run_out, wire, answer, timeout_s)
    try:
        await wire.news()
        if not answer.over:  # [DONE] came; the end of the response is still due
            limit.cancel()
            soon = min(loop.time() + AFTER_DONE_S, limit.when())
            limit = loop.call_at(soon, _run_out, wire, answer, timeout_s)
            while not answer.over:
                await wire.news()
    finally:
        limit.cancel()


def _run_out(wire: Connection, answer: Answer, timeout_s: float) -> None:
    catch_up()
    answer.fail("timeout", f"the answer was not complete within {timeout_s:g} s", time.monotonic_ns())
    wire.wake()
