"""A panel of lines that repaints only the lines that changed."""

from collections.abc import Sequence

from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip

from deploytui.tui.pieces import Line
from deploytui.tui.widgets.toned import Toned
from deploytui.tui.wrapping import wrapped_all


class LinePanel(Toned, can_focus=False):
    """Lines of text, wrapped unless told otherwise; it scrolls when there are more than fit.

    With `grow` it is as high as its lines, within what the style sheet allows.
    """

    def __init__(self, *, id: str | None = None, wrap: bool = True, follow: bool = False, grow: bool = False) -> None:
        super().__init__(id=id)
        self.wrap, self.follow, self.grow = wrap, follow, grow
        self.shown: tuple[Line, ...] = ()
        self._source: tuple[Line, ...] = ()

    def show(self, lines: Sequence[Line], *, top: bool = False) -> None:
        """Take the newest lines; `top` scrolls back, for lines about something else."""
        self._source = tuple(lines)
        self._place(top=top)

    def on_resize(self, _event: events.Resize) -> None:
        """Wrap anew for another width."""
        self._place()

    def _place(self, *, top: bool = False) -> None:
        before = self.shown
        self.shown = wrapped_all(self._source, self.room) if self.wrap and self.room else self._source
        at_end = self.scroll_offset.y >= self.max_scroll_y
        if len(before) != len(self.shown) or self.virtual_size.width != self.room:
            self.virtual_size = Size(self.room, len(self.shown))
            if self.grow:
                # Set, not `auto`: a height worked out before the first lines came may be kept for good.
                self.styles.height = len(self.shown) + self.styles.gutter.height
            self.refresh()
        self._refresh_changes(before)
        if self.follow and (at_end or top):
            # Forced: as long as all lines fitted, no scrolling is allowed, and the bar comes only with the next layout.
            self.scroll_end(animate=False, immediate=True, force=True)
        elif top and self.scroll_offset.y:
            self.scroll_to(y=0, animate=False, force=True)

    def _refresh_changes(self, before: Sequence[Line]) -> None:
        first, last = self.scroll_offset.y, self.scroll_offset.y + self.size.height
        for place in range(first, min(last, max(len(before), len(self.shown)))):
            if _at(before, place) != _at(self.shown, place):
                self.refresh(Region(0, place - first, self.room, 1))

    def render_line(self, y: int) -> Strip:
        """The strip of a line of the window."""
        return self.strip_of(_at(self.shown, y + self.scroll_offset.y) or ())


def _at(lines: Sequence[Line], place: int) -> Line | None:
    return lines[place] if place < len(lines) else None
