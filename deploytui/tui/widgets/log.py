"""The end of an engine's log, followed while it is looked at."""

from pathlib import Path

from textual import work

from deploytui.tui.logs import LogTail
from deploytui.tui.pieces import Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.threads import in_thread
from deploytui.tui.widgets.panel import LinePanel

LOOK_S = 0.5


class EngineLog(LinePanel):
    """Plain text, whatever the engine wrote; stays at the end unless it was scrolled up."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, wrap=True, follow=True)
        self._tail: LogTail | None = None

    def on_mount(self) -> None:
        """Look now and then."""
        self.set_interval(LOOK_S, self.look)

    def open(self, folder: Path | None) -> None:
        """Follow the log in a candidate's folder; None when there is no folder."""
        if self._tail is not None and self._tail.folder == folder:
            return
        self._tail = LogTail(folder) if folder is not None else None
        text = "nothing logged so far" if folder else "no log: these are saved results"
        self.show([line(Piece(text, "dim"))], top=True)
        self.look()

    def close(self) -> None:
        """Read nothing any more."""
        self._tail = None

    @work(exclusive=True)
    async def look(self) -> None:
        """Read what is new, in a thread: homes may be slow."""
        tail = self._tail
        if tail is None or not await in_thread(tail.read) or tail is not self._tail:
            return
        self.show([line(visible(text)) for text in tail.text()])
