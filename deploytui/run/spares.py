"""Load workers started before they are needed: their start-up passes while the engine is found and asked."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from anyio.abc import Process

from deploytui.errors import DeployError
from deploytui.run.children import child, marked

WORKER = (sys.executable, "-m", "deploytui.load.worker")
LAST_WORDS_S = 10.0
"""How long a worker may take to write down what is finished after it was told to stop [s]."""


class Spares:
    """Worker processes that wait for an order; each carries out one."""

    def __init__(self, session: str, errors: Path) -> None:
        self.errors = errors
        """Their last words."""
        self._session = session
        self._waiting: list[tuple[AsyncExitStack, Process]] = []

    async def keep(self, count: int) -> None:
        """Have so many wait, as far as the node lets us: one that is needed and can't be started says so itself."""
        with suppress(DeployError):
            while len(self._waiting) < count:
                self._waiting.append(await self._started())

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Process]:
        """One that waits, else a fresh one; gone at the end of the block."""
        held, process = await self._taken()
        async with held:
            yield process

    async def close(self) -> None:
        """Let those go that were never needed."""
        while self._waiting:
            held, _ = self._waiting.pop()
            await held.aclose()

    async def _taken(self) -> tuple[AsyncExitStack, Process]:
        while self._waiting:
            held, process = self._waiting.pop()
            if process.returncode is None:
                return held, process
            await held.aclose()
        return await self._started()

    async def _started(self) -> tuple[AsyncExitStack, Process]:
        async with AsyncExitStack() as stack:
            try:
                process = await stack.enter_async_context(
                    child(WORKER, env=marked(self._session), errors=self.errors, grace_s=LAST_WORDS_S)
                )
            except OSError as error:
                fix = "Look at the limits of processes, memory and open files of this user (ulimit -a)."
                raise DeployError("A load worker can't be started.", why=str(error), fix=fix) from error
            held = stack.pop_all()
        return held, process
