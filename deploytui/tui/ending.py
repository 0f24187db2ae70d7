"""A clean end for each way a screen can end: a signal, a dropped line, a terminal that is simply gone."""

import asyncio
import os
import select
import signal
import threading
from functools import partial

from textual.app import App

HANG_UP = 128 + signal.SIGHUP
PATIENCE_S = 2.0
"""How long an orderly end may take when there is no terminal left to put back [s]."""
LOOK_S = 2.0


def end_cleanly(app: App[None]) -> None:
    """From now on signals end the app as `q` does, and a terminal that is gone ends it too. For a running app."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, partial(app.exit, return_code=128 + signal.SIGTERM))
    loop.add_signal_handler(signal.SIGHUP, partial(hang_up, app))
    if not app.is_headless:
        app.set_interval(LOOK_S, partial(_look, app))


def hang_up(app: App[None]) -> None:
    """The line dropped: end, whatever still waits for the terminal.

    Textual's output thread dies of the first write to a terminal that is gone, and then its queue blocks the event
    loop; its input thread spins. So both get a null device, and the process ends after a short patience in any case.
    It owns nothing: the runner is another process.
    """
    last = threading.Timer(PATIENCE_S, os._exit, (HANG_UP,))
    last.daemon = True
    last.start()
    if _gone():
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 2):
            os.dup2(null, fd)
        os.close(null)
    app.exit(return_code=HANG_UP)


def _look(app: App[None]) -> None:
    """Notice a terminal that went without a signal."""
    if _gone():
        hang_up(app)


def _gone() -> bool:
    """Whether there is nobody at the other end of the terminal."""
    poll = select.poll()
    poll.register(0, 0)
    return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
