"""What signals mean to the runner."""

import signal

from anyio import open_signal_receiver

from deploytui.run.halt import Halt


async def obey_signals(halt: Halt) -> None:
    """SIGINT and SIGTERM stop: cleanly, the second time at once. A hang-up or a stop key do not end a measurement."""
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)
    with open_signal_receiver(*wanted) as received:
        async for number in received:
            if number in (signal.SIGINT, signal.SIGTERM):
                halt.stop()
