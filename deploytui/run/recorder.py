"""The runner's pen: every event goes to the journal and into the fold, once, in order."""

import time
from collections import deque
from collections.abc import Callable

from anyio import to_thread

from deploytui.errors import SessionError
from deploytui.record.events import AnyEvent, NodeRollup, Progress, Rollup
from deploytui.record.fold import fold
from deploytui.record.state import SessionState
from deploytui.session.journal import Journal
from deploytui.session.secrets import masked_event

Listener = Callable[[AnyEvent, SessionState], None]
KEPT_WHILE_FULL = 10_000


def now_ns() -> int:
    """The clock of all events: monotonic [ns]."""
    return time.monotonic_ns()


class Recorder:
    """Writes events and keeps the state they fold to.

    A disk that is full stops neither the measurement nor the engines' clean-up: what could not be written waits in
    memory, series of the screen excepted, and goes out when there is room again.
    """

    def __init__(self, journal: Journal, complain: Callable[[str], None], secrets: tuple[str, ...] = ()) -> None:
        self.journal = journal
        self.state = SessionState()
        self.listeners: list[Listener] = []
        self.trouble: str | None = None
        """The last reason the journal could not be written; None while all is on disk."""
        self._complain = complain
        self.secrets = secrets
        """What is written nowhere."""
        self._waiting: deque[AnyEvent] = deque(maxlen=KEPT_WHILE_FULL)

    def hide(self, secret: str) -> None:
        """Keep one more secret out of all that is said from now on, such as the key of an engine."""
        self.secrets = (secret, *self.secrets)

    def say(self, event: AnyEvent) -> None:
        """Record `event`, without secrets."""
        event = masked_event(event, self.secrets)
        self.state = fold(self.state, event)
        self._write(event)
        for listener in self.listeners:
            listener(event, self.state)

    async def sync(self) -> None:
        """Return when everything said so far is on disk, or was complained about."""
        await to_thread.run_sync(self._sync)

    def _write(self, event: AnyEvent) -> None:
        if self.trouble is not None and isinstance(event, Rollup | NodeRollup | Progress):
            return
        self._waiting.append(event)
        try:
            while self._waiting:
                self.journal.append(self._waiting[0])
                self._waiting.popleft()
        except SessionError as error:
            self._troubled(error)
        else:
            self.trouble = None

    def _sync(self) -> None:
        try:
            self.journal.sync()
        except (SessionError, OSError) as error:
            self._troubled(error)

    def _troubled(self, error: Exception) -> None:
        text = error.text() if isinstance(error, SessionError) else str(error)
        if self.trouble is None:
            self._complain(text)
        self.trouble = text
