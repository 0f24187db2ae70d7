"""A view that draws lines itself, in the tones of the theme."""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.scroll_view import ScrollView
from textual.strip import Strip

from deploytui.tui.pieces import Piece


class Toned(ScrollView):
    """A `render_line` view whose inks are the component classes of the app, where they are worked out once for all."""

    DEFAULT_CSS = """
    Toned { background: transparent; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tones: dict[tuple[str, ...], Style] = {}

    def notify_style_update(self) -> None:
        """Forget the old theme's colours."""
        super().notify_style_update()
        self._tones.clear()

    def tone(self, *names: str) -> Style:
        """The style of tones, or of own component classes by their whole name, laid over each other.

        The background is that of the view, or of a first own class: Textual itself would take that of the last.
        """
        if names not in self._tones:
            own = bool(names) and "--" in names[0]
            base = self.get_component_rich_style(names[0]) if own else self.rich_style
            self._tones[names] = Style.combine([base, *(self._ink(name) for name in names[own:])])
        return self._tones[names]

    def _ink(self, name: str) -> Style:
        """A style without its background."""
        if "--" in name:
            style = self.get_component_rich_style(name)
        else:
            style = self.app.get_component_styles(f"tone--{name}").rich_style
        return Style(color=style.color, bold=style.bold, underline=style.underline, reverse=style.reverse)

    @property
    def room(self) -> int:
        """How many cells wide a line may be; a scroll bar takes one."""
        return self.scrollable_content_region.width

    def strip_of(self, pieces: Iterable[Piece], *under: str) -> Strip:
        """The pieces as a strip as wide as the view."""
        segments = [Segment(text, self.tone(*under, tone)) for text, tone in pieces]
        return Strip(segments).adjust_cell_length(self.room, self.tone(*under))
