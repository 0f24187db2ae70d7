"""The runner as a command in the foreground."""

import signal
import sys
from collections.abc import Sequence

import anyio

from deploytui.run.children import unwrapped
from deploytui.run.job import RUN, Job
from deploytui.run.plain import PlainView
from deploytui.run.prepare import Prepared
from deploytui.run.recorder import Listener
from deploytui.run.session import Ended, run_session


def run_here(prepared: Prepared, *, quiet: bool = False, job: Job = RUN) -> Ended:
    """Run a prepared session in this process."""
    view = PlainView(sys.stderr)
    listeners: Sequence[Listener] = () if quiet else (view.see,)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        with unwrapped():
            return anyio.run(run_session, prepared, listeners, view.complain, job)
    finally:
        prepared.lock.release()
