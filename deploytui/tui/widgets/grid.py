"""The grid of candidates: draws lines itself and repaints only the cells that changed."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip

from deploytui.tui.columns import RIGHT, Column, cell_of, layout
from deploytui.tui.pieces import Line, text_of
from deploytui.tui.widgets.toned import Toned

HEADER = 1
"""Lines at the top that do not scroll."""


class GridRow(Struct, frozen=True):
    """A candidate as the grid shows it."""

    name: str
    cells: Mapping[str, Line]
    star: str = ""
    marked: bool = False


class CandidateGrid(Toned, can_focus=True):
    """A row a candidate, a cursor on one cell; the selected row is always in view."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", show=False, id="grid.up", tooltip="The candidate above"),
        Binding("down,j", "step(1)", "Down", show=False, id="grid.down", tooltip="The candidate below"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="grid.page_up", tooltip="A page of candidates up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="grid.page_down", tooltip="A page down"),
        Binding("home", "step(-100000)", "First", show=False, id="grid.first", tooltip="The first candidate"),
        Binding("end", "step(100000)", "Last", show=False, id="grid.last", tooltip="The last candidate"),
        Binding("left,h", "across(-1)", "Left", show=False, id="grid.left", tooltip="The number to the left"),
        Binding("right,l", "across(1)", "Right", show=False, id="grid.right", tooltip="The number to the right"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"grid--head", "grid--selected", "grid--cursor"}
    DEFAULT_CSS = """
    CandidateGrid {
        & > .grid--head { text-style: bold; color: $foreground 60%; }
        & > .grid--selected { background: $primary 25%; }
        & > .grid--cursor { text-style: underline; }
        &:ansi > .grid--head { color: ansi_default; }
        &:ansi > .grid--selected { background: transparent; text-style: bold; }
    }
    """

    selected: var[str | None] = var(None, init=False)
    column: var[str] = var("ttft", init=False)

    class Selected(Message):
        """Another candidate is selected; `by_hand` when a user chose it."""

        def __init__(self, name: str | None, *, by_hand: bool) -> None:
            super().__init__()
            self.name, self.by_hand = name, by_hand

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: tuple[GridRow, ...] = ()
        self.columns: tuple[Column, ...] = ()
        self._heads: Mapping[str, str] = {}
        self._strips: dict[str, tuple[GridRow, bool, Strip]] = {}

    # What is shown

    def show(self, rows: Sequence[GridRow], heads: Mapping[str, str]) -> None:
        """Take the newest rows; repaints no more than what differs."""
        old, self.rows, self._heads = self.rows, tuple(rows), heads
        same_places = [row.name for row in old] == [row.name for row in self.rows]
        if not self._laid_out() and same_places:
            self._refresh_changes(old)
        else:
            self.virtual_size = Size(self.room, len(self.rows) + HEADER)
            self.refresh()
        if self.place is None:
            self._select(0, by_hand=False)

    def _laid_out(self) -> bool:
        """Whether the columns had to be placed anew."""
        columns = layout(self.room, [row.cells for row in self.rows], self._heads) if self._heads else ()
        changed = columns != self.columns
        if changed:
            self.columns = columns
            self._strips.clear()
        return changed

    def _refresh_changes(self, old: Sequence[GridRow]) -> None:
        regions = [
            region
            for place, (before, now) in enumerate(zip(old, self.rows, strict=True))
            if before is not now and before != now
            for region in self._changes(place, before, now)
        ]
        if regions:
            self.refresh(*regions)

    def _changes(self, place: int, before: GridRow, now: GridRow) -> list[Region]:
        y = place + HEADER - self.scroll_offset.y
        if not HEADER <= y < self.size.height:
            return []
        if (before.star, before.marked) != (now.star, now.marked):
            return [Region(0, y, self.room, 1)]
        changed = [column for column in self.columns if cell_of(before.cells, column) != cell_of(now.cells, column)]
        return [Region(column.x, y, column.width, 1) for column in changed]

    def on_resize(self, _event: events.Resize) -> None:
        """Place the columns for the new width and keep the selection in view."""
        self._laid_out()
        self.virtual_size = Size(self.room, len(self.rows) + HEADER)
        self._keep_in_view()
        self.refresh()

    def notify_style_update(self) -> None:
        """Forget strips in the old theme's colours."""
        super().notify_style_update()
        self._strips.clear()

    # Selection

    @property
    def place(self) -> int | None:
        """The selected row's place among the rows; None when it is not among them."""
        return next((place for place, row in enumerate(self.rows) if row.name == self.selected), None)

    def select(self, name: str) -> None:
        """Select a candidate without a user's hand."""
        place = next((place for place, row in enumerate(self.rows) if row.name == name), None)
        if place is not None and name != self.selected:
            self._select(place, by_hand=False)

    def _select(self, place: int, *, by_hand: bool) -> None:
        place = min(max(place, 0), len(self.rows) - 1)
        name = self.rows[place].name if self.rows else None
        if name != self.selected or by_hand:
            self.selected = name
            self.post_message(self.Selected(name, by_hand=by_hand))

    def watch_selected(self, before: str | None, now: str | None) -> None:
        """Repaint the row that was selected and the one that is."""
        self._keep_in_view()
        for name in (before, now):
            for place, row in enumerate(self.rows):
                if row.name == name:
                    self.refresh(Region(0, place + HEADER - self.scroll_offset.y, self.room, 1))

    def watch_column(self) -> None:
        """Repaint the selected row, whose cursor moved."""
        self._strips.pop(self.selected or "", None)
        if self.place is not None:
            self.refresh(Region(0, self.place + HEADER - self.scroll_offset.y, self.room, 1))

    def _keep_in_view(self) -> None:
        if self.place is None or self.size.height <= HEADER:
            return
        last = self.place - (self.size.height - HEADER - 1)
        top = min(max(self.scroll_offset.y, last), self.place)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True)

    def action_step(self, count: int) -> None:
        """Select the row `count` places further."""
        self._select((self.place or 0) + count, by_hand=True)

    def action_page(self, count: int) -> None:
        """Select the row `count` pages further."""
        self.action_step(count * max(self.size.height - HEADER - 1, 1))

    def action_across(self, count: int) -> None:
        """Move the cursor `count` columns further."""
        keys = [column.key for column in self.columns]
        place = keys.index(self.column) if self.column in keys else 0
        if keys:
            self.column = keys[min(max(place + count, 0), len(keys) - 1)]

    def on_click(self, event: events.Click) -> None:
        """Select the row and the column under the pointer."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < HEADER:
            return
        under = [column.key for column in self.columns if column.x <= offset.x]
        self.column = under[-1] if under else self.column
        self._select(offset.y - HEADER + self.scroll_offset.y, by_hand=True)

    # Drawing

    def render_line(self, y: int) -> Strip:
        """The strip of a line of the window."""
        place = y - HEADER + self.scroll_offset.y
        if y < HEADER:
            return self._head()
        if place >= len(self.rows):
            return Strip.blank(self.room, self.tone())
        row = self.rows[place]
        chosen = row.name == self.selected
        kept = self._strips.get(row.name)
        if kept is None or kept[0] is not row or kept[1] != chosen or kept[2].cell_length != self.room:
            kept = self._strips[row.name] = (row, chosen, self._row(row, chosen))
        return kept[2]

    def _head(self) -> Strip:
        text = " " * (self.columns[0].x if self.columns else 0)
        for column in self.columns:
            title = column.title.rjust(column.width) if column.key in RIGHT else column.title.ljust(column.width)
            text += title[: column.width] + " "
        style = self.tone("grid--head")
        return Strip([Segment(text, style)]).adjust_cell_length(self.room, style)

    def _row(self, row: GridRow, chosen: bool) -> Strip:
        base = ("grid--selected",) if chosen else ()
        sign = f"{'›' if chosen else ' '}{'•' if row.marked else ' '}"
        pieces = [Segment(sign, self.tone(*base, "mark")), Segment(f"{row.star or ' '} ", self.tone(*base, "good"))]
        for column in self.columns:
            parts = cell_of(row.cells, column)
            cursor = chosen and column.key == self.column and column.key != "name"
            blank = not text_of(parts).strip()
            for text, tone in parts:
                under = cursor and (blank or not text.isspace())
                pieces.append(Segment(text, self.tone(*base, *(["grid--cursor"] if under else []), tone)))
            pieces.append(Segment(" ", self.tone(*base)))
        return Strip(pieces).adjust_cell_length(self.room, self.tone(*base))
