"""Blocking work beside the event loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(work: Callable[[], Result]) -> Result:
    """What `work` gives or raises; cancelled, it is left to itself.

    In a daemon thread: neither a home that hangs nor a slow start of a runner can hold up the end of the screen, which
    a thread of asyncio's or anyio's pool would. Nor does the first frame pay for the import of such a pool.
    """
    future: Future[Result] = Future()
    threading.Thread(target=_settle, args=(future, work), daemon=True).start()
    return await asyncio.wrap_future(future)


def _settle(future: Future[Result], work: Callable[[], Result]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 -- given to whoever awaits it
        future.set_exception(error)
    else:
        future.set_result(result)
