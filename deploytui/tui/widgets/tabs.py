"""The strip of tabs: numbered, the open one in brackets too, so that it is seen without colour."""

from textual import events
from textual.message import Message
from textual.reactive import var

from deploytui.tui.pieces import Line, Piece, line, width_of
from deploytui.tui.widgets.panel import LinePanel


class TabStrip(LinePanel):
    """One line of names; `open` is the name of the open one."""

    DEFAULT_CSS = "TabStrip { height: 1; }"

    open: var[str] = var("", init=False)

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, names: tuple[str, ...], *, id: str | None = None) -> None:
        super().__init__(id=id, wrap=False)
        self.names = names

    def watch_open(self) -> None:
        """Draw the strip anew."""
        self.show([self.strip_line()])

    def strip_line(self) -> Line:
        """All names, each with its number."""
        return line(*(piece for place, name in enumerate(self.names, 1) for piece in self._tab(place, name)))

    def _tab(self, place: int, name: str) -> tuple[Piece, ...]:
        if name == self.open:
            return (Piece(f"[{place} {name}]", "on"), Piece(" "))
        return Piece(f" {place} ", "dim"), Piece(f"{name} "), Piece(" ")

    def on_click(self, event: events.Click) -> None:
        """Open the tab under the pointer."""
        x = 0
        for place, name in enumerate(self.names, 1):
            x += width_of(self._tab(place, name))
            if event.x < x:
                self.post_message(self.Chosen(name))
                return
