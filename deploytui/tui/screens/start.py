"""Started on nothing: recent sessions and the profiles at hand."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Input

from deploytui.session.folder import SessionFolder
from deploytui.tui.context import Context
from deploytui.tui.listing import PROFILE_HEADS, SESSION_HEADS, Listed, read_lists
from deploytui.tui.messages import OpenProfile, OpenSession
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.screens.asking import ask_and_start
from deploytui.tui.screens.helping import help_lines
from deploytui.tui.screens.modals import Say
from deploytui.tui.threads import in_thread
from deploytui.tui.widgets.keys import KeyBar
from deploytui.tui.widgets.panel import LinePanel
from deploytui.tui.widgets.table import ListTable

HINTS = {
    "start.open": 1,
    "start.run": 2,
    "start.switch": 3,
    "start.filter": 4,
    "start.reload": 5,
    "start.help": 0,
    "start.quit": 0,
    "app.palette": 0,
}


class StartScreen(Screen[None]):
    """Two lists that stand still; enter opens, r runs."""

    CSS_PATH = "start.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", id="start.open", tooltip="Show the session, or what the profile asks for"),
        Binding("r", "run", "Run", id="start.run", tooltip="Measure the profile as a new session"),
        Binding("tab,shift+tab", "switch", "Other list", id="start.switch", tooltip="Sessions or profiles"),
        Binding("slash", "filter", "Filter", id="start.filter", tooltip="Show only rows that contain a text"),
        Binding("R,f5", "reload", "Reload", id="start.reload", tooltip="Read both lists again"),
        Binding("escape", "back", "Back", show=False, id="start.back", tooltip="Drop the filter"),
        Binding("question_mark", "help", "Help", id="start.help", tooltip="Keys, signs, and what the numbers mean"),
        Binding("q,ctrl+c", "leave", "Quit", id="start.quit", tooltip="Quit"),
    ]

    sessions = getters.query_one("#sessions", ListTable)
    profiles = getters.query_one("#profiles", ListTable)

    def __init__(self, context: Context) -> None:
        super().__init__()
        self.context = context
        self.rows: dict[str, list[Listed]] = {"sessions": [], "profiles": []}

    def compose(self) -> ComposeResult:
        """A list below the other."""
        yield LinePanel(id="title", wrap=False)
        yield LinePanel(id="sessions-head").add_class("heading")
        yield ListTable(id="sessions", cursor_type="row", cell_padding=1)
        yield LinePanel(id="profiles-head").add_class("heading")
        yield ListTable(id="profiles", cursor_type="row", cell_padding=1)
        yield LinePanel(id="hint", grow=True)
        yield Input(placeholder="part of a name, a state or a decision", id="filter", compact=True)
        yield KeyBar(HINTS)

    def on_mount(self) -> None:
        """Name the lists and their columns, then read them."""
        self.show_headings()
        self.sessions.add_columns(*SESSION_HEADS)
        self.profiles.add_columns(*PROFILE_HEADS)
        self.action_reload()

    def on_screen_resume(self) -> None:
        """Something may have changed while another screen was above."""
        if self.is_mounted:
            self.action_reload()

    @work(exclusive=True, group="reload")
    async def action_reload(self) -> None:
        """Read both lists in a thread, and show them."""
        first = not any(self.rows.values())
        sessions, profiles = await in_thread(partial(read_lists, self.context))
        self.rows = {"sessions": sessions, "profiles": profiles}
        self.show_rows()
        if first and not isinstance(self.focused, Input):
            (self.sessions if sessions else self.profiles).focus()

    def show_headings(self) -> None:
        """What stands above the lists."""
        self.query_one("#title", LinePanel).show([line(Piece("deploytui", "mark"), "  choose how to deploy a model")])
        self.query_one("#sessions-head", LinePanel).show([line(Piece("Recent sessions", "strong"))])
        where = line(Piece("Profiles", "strong"), Piece(f"  in {visible(str(self.context.profiles))}", "dim"))
        self.query_one("#profiles-head", LinePanel).show([where])

    def show_rows(self) -> None:
        """The rows that pass the filter."""
        needle = self.query_one("#filter", Input).value.casefold()
        for table, rows in ((self.sessions, self.rows["sessions"]), (self.profiles, self.rows["profiles"])):
            _refill(table, [row for row in rows if needle in row.words])
        self.query_one("#hint", LinePanel).show(self.hint_lines())
        self.refresh_bindings()

    def hint_lines(self) -> Sequence[Line]:
        """What to do where there is nothing."""
        lines: list[Line] = []
        if not self.rows["sessions"]:
            lines.append(line("No session yet. ", Piece("deploytui demo", "strong"), " measures a small model here."))
        if not self.rows["profiles"]:
            lines.append(
                line("No profile here. The demo's own, saved with ", Piece("s", "mark"), ", is one to begin with.")
            )
        return lines

    # What is chosen

    @property
    def table(self) -> ListTable:
        """The list that has, or last had, the focus."""
        return self.profiles if self.profiles.has_focus or not self.rows["sessions"] else self.sessions

    @property
    def key(self) -> str | None:
        """The path of the row under the cursor; None in an empty list."""
        table = self.table
        if not table.is_valid_row_index(table.cursor_row):
            return None
        return table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Opening and running need a row."""
        if action in ("open", "run"):
            return self.is_mounted and self.key is not None
        return super().check_action(action, parameters)

    @on(DataTable.RowSelected)
    def action_open(self) -> None:
        """Show the session, or the profile."""
        if self.key is None:
            return
        if self.table is self.sessions:
            self.post_message(OpenSession(SessionFolder(Path(self.key))))
        else:
            self.post_message(OpenProfile(Path(self.key)))

    @work(group="dialog")
    async def action_run(self) -> None:
        """Measure the profile, or that of the session again."""
        if self.key is None:
            return
        path = SessionFolder(Path(self.key)).profile if self.table is self.sessions else Path(self.key)
        await ask_and_start(self, self.context, path, Path(self.key).name)

    def action_switch(self) -> None:
        """Go to the other list."""
        (self.sessions if self.table is self.profiles and self.rows["sessions"] else self.profiles).focus()
        self.refresh_bindings()

    def action_filter(self) -> None:
        """Type what rows must contain."""
        self.query_one("#filter").add_class("-on").focus()

    @on(Input.Changed, "#filter")
    def filter_rows(self) -> None:
        """Filter while it is typed."""
        self.show_rows()

    @on(Input.Submitted, "#filter")
    def keep_filter(self) -> None:
        """Back to the rows, filtered."""
        (self.sessions if self.sessions.row_count else self.profiles).focus()

    def action_back(self) -> None:
        """Drop the filter."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.remove_class("-on")
        self.keep_filter()

    def action_help(self) -> None:
        """Keys, signs and words."""
        self.app.push_screen(Say("Help", help_lines(self.app, self)))

    def action_leave(self) -> None:
        """Quit; nothing runs from here."""
        self.app.exit()


def _refill(table: ListTable, rows: Sequence[Listed]) -> None:
    """Show other rows; the cursor stays on its row where that is still there."""
    old = [key.value for key in table.rows]
    if old == [row.key for row in rows] and all(table.get_row(row.key) == list(row.cells) for row in rows):
        return
    place = table.cursor_row
    table.clear()
    for row in rows:
        table.add_row(*row.cells, key=row.key)
    table.move_cursor(row=min(place, max(len(rows) - 1, 0)))
