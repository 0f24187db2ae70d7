"""While a load runs: words on the leash, snapshots at a fixed pace, signals."""

import asyncio
import signal
from collections.abc import Callable

from deploytui.load.orders import Snapshot, Stopped
from deploytui.load.pipes import Inbox, Outbox

SNAPSHOT_S = 0.15
"""Between two snapshots [s]."""

_ENDING = (signal.SIGTERM, signal.SIGINT)


class Watch:
    """Hears the other side from its making on; `end` is called when it wishes the load to end, or is gone."""

    def __init__(self, inbox: Inbox, outbox: Outbox, end: Callable[[Stopped], None]) -> None:
        self._inbox, self._outbox, self._end = inbox, outbox, end
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.start: asyncio.Future[int] = self._loop.create_future()
        """When the load shall begin [ns]; 0 for at once."""

    def __enter__(self) -> "Watch":
        for sign in _ENDING:
            self._loop.add_signal_handler(sign, self._end, "cancelled")
        try:
            self._loop.add_reader(self._inbox.fd, self._heard)
        except PermissionError:  # a plain file: there is no other side that could hold the leash
            self._end("cancelled")
        self._obey()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for sign in _ENDING:
            self._loop.remove_signal_handler(sign)
        self._loop.remove_reader(self._inbox.fd)

    def tell(self, snapshot: Callable[[], Snapshot]) -> None:
        """Say where the load is, now and again and again."""
        self._outbox.offer(snapshot())
        if self._outbox.gone:
            self._end("cancelled")
        self._timer = self._loop.call_later(SNAPSHOT_S, self.tell, snapshot)

    def _heard(self) -> None:
        self._inbox.take()
        if self._inbox.closed:
            self._loop.remove_reader(self._inbox.fd)
        self._obey()

    def _obey(self) -> None:
        for word in self._inbox.words():
            if word.do == "stop":
                self._end(word.why)
            elif word.do == "start" and not self.start.done():
                self.start.set_result(word.at_ns)
        if self._inbox.closed:
            self._end("cancelled")
