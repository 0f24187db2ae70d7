"""A list that stands still: rows with keys, and a cursor on one."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import DataTable


class ListTable(DataTable[object], inherit_bindings=False):
    """A DataTable that leaves enter to its screen, and whose keys can be moved by a keymap."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor_up", "Up", show=False, id="list.up", tooltip="The row above"),
        Binding("down,j", "cursor_down", "Down", show=False, id="list.down", tooltip="The row below"),
        Binding("pageup", "page_up", "Page up", show=False, id="list.page_up", tooltip="A page of rows up"),
        Binding("pagedown", "page_down", "Page down", show=False, id="list.page_down", tooltip="A page of rows down"),
        Binding("home", "scroll_top", "First", show=False, id="list.first", tooltip="The first row"),
        Binding("end", "scroll_bottom", "Last", show=False, id="list.last", tooltip="The last row"),
    ]
