"""A view that draws lines itself, in the tones of the theme."""

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.scroll_view import ScrollView
from textual.strip import Strip

from deploytui.tui.pieces import TONES, Piece


class Toned(ScrollView):
    """A `render_line` view with a component class for each tone."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in TONES}
    DEFAULT_CSS = """
    Toned {
        background: transparent;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .tone--plain { color: $foreground; }
        & > .tone--strong { text-style: bold; color: $foreground; }
        & > .tone--dim { color: $foreground 60%; }
        & > .tone--good { color: $text-success; }
        & > .tone--bad { color: $text-error; }
        & > .tone--warn { color: $text-warning; }
        & > .tone--busy { color: $text-accent; }
        & > .tone--bars { color: $accent 75%; }
        & > .tone--mark { text-style: bold; color: $text-primary; }
        & > .tone--on { text-style: bold reverse; color: $text-primary; }
        & > .tone--sim { text-style: bold reverse; color: $text-warning; }
        &:ansi > .tone--dim { color: ansi_default; }
        &:ansi > .tone--bars { color: ansi_cyan; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tones: dict[tuple[str, ...], Style] = {}

    def notify_style_update(self) -> None:
        """Forget the old theme's colours."""
        super().notify_style_update()
        self._tones.clear()

    def tone(self, *names: str) -> Style:
        """The style of tones, or other component classes by their whole name, laid over each other.

        The background is that of the first: Textual itself would take that of the last.
        """
        if not names:
            return self.rich_style
        if names not in self._tones:
            first, *rest = (self.get_component_rich_style(_class(name)) for name in names)
            self._tones[names] = Style.combine([first, *map(_ink, rest)])
        return self._tones[names]

    def strip_of(self, pieces: Iterable[Piece], *under: str) -> Strip:
        """The pieces as a strip as wide as the view."""
        segments = [Segment(text, self.tone(*under, tone)) for text, tone in pieces]
        return Strip(segments).adjust_cell_length(self.size.width, self.tone(*under))


def _class(name: str) -> str:
    return name if "--" in name else f"tone--{name}"


def _ink(style: Style) -> Style:
    """A style without its background."""
    return Style(color=style.color, bold=style.bold, underline=style.underline, reverse=style.reverse)
