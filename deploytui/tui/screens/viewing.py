"""Looking at a session: tabs, marks, filter, explanations; and taking its results elsewhere."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual import work
from textual.widgets import Input

from deploytui.errors import DeployError
from deploytui.tui.details.explain import EXPLAINED, explain_lines, explain_title
from deploytui.tui.headline import session_name
from deploytui.tui.rows import view_of
from deploytui.tui.screens.helping import help_lines
from deploytui.tui.screens.modals import PathPrompt, Say, error_dialog
from deploytui.tui.screens.session import SessionScreen
from deploytui.tui.tabs import TABS
from deploytui.tui.threads import in_thread
from deploytui.tui.widgets.panel import LinePanel


class Viewing(SessionScreen):
    """Actions that change nothing of the session."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Saving needs a session folder, exporting results of any kind."""
        planned = self.standing is not None and bool(self.standing.state.candidates)
        if action == "save":
            return self.folder is not None and planned
        if action == "export":
            return self.profile_path is not None and planned
        if action in ("mark", "explain", "zoom"):
            return planned
        return super().check_action(action, parameters)

    def action_open_tab(self, name: str) -> None:
        """Open a tab by name."""
        self.tab = name

    def action_turn_tab(self, count: int) -> None:
        """Open the tab `count` places further, round the ends."""
        self.tab = TABS[(TABS.index(self.tab) + count) % len(TABS)]

    def action_zoom(self) -> None:
        """Give the details the whole window, or take it back."""
        self.zoomed = not self.zoomed

    def action_scroll_detail(self, count: int) -> None:
        """Scroll the open tab by lines."""
        name = "#log" if self.tab == "Log" else "#tab"
        self.query_one(name, LinePanel).scroll_relative(y=count, animate=False)

    def action_mark(self) -> None:
        """Mark the selected candidate, or take its mark off, and go on to the next."""
        name = self.grid.selected
        if name is not None:
            marked = set(self.marked) ^ {name}
            rows = self.standing.state.candidates if self.standing else {}
            self.marked = tuple(row for row in rows if row in marked)
            self.show_all()

    def action_filter(self) -> None:
        """Type what rows must contain."""
        field = self.query_one("#filter", Input)
        field.add_class("-on")
        field.focus()

    def action_back(self) -> None:
        """Undo the nearest thing: the filter, the zoom, then this screen where another lies below."""
        field = self.query_one("#filter", Input)
        if field.has_class("-on"):
            field.value = ""
            field.remove_class("-on")
            self.grid.focus()
        elif self.zoomed:
            self.zoomed = False
        elif len(self.app.screen_stack) > 2:
            self.app.pop_screen()

    def action_follow(self) -> None:
        """Let the selection go with the candidate that is worked on."""
        raise NotImplementedError

    def action_explain(self) -> None:
        """Say what the number under the cursor is: formula, n, what is left out."""
        row, column = self.chosen, self.grid.column
        if row is None or self.standing is None:
            return
        if column not in EXPLAINED:
            self.notify("Move to a number with ← → first; then i explains it.", markup=False)
            return
        view = view_of(self.standing)
        self.app.push_screen(Say(explain_title(column, row, view), explain_lines(column, row, view)))

    def action_help(self) -> None:
        """Keys, signs and words."""
        self.app.push_screen(Say("Help", help_lines(self.app, self)))

    @work(group="dialog")
    async def action_save(self) -> None:
        """Save configuration, results and decision as one profile."""
        from deploytui.tui.screens.writing import saved_default, write_profile

        if self.folder is None or self.standing is None:
            return
        default = saved_default(self.context.profiles, session_name(self.standing), self.context.wall())
        path = await self.app.push_screen_wait(PathPrompt("Save as profile", default))
        if path is not None:
            await self._write(partial(write_profile, self.folder, path))

    @work(group="dialog")
    async def action_export(self) -> None:
        """Write the result as JSON."""
        from deploytui.tui.screens.writing import write_result

        source = self.folder or self.saved
        if source is None:
            return
        name = source.stem if isinstance(source, Path) else source.id
        path = await self.app.push_screen_wait(PathPrompt("Export as JSON", Path(f"{name}.json")))
        if path is not None:
            await self._write(partial(write_result, source, path))

    async def _write(self, write: Callable[[], Path]) -> None:
        """Write in a thread and say where it lies, or why it does not."""
        try:
            written = await in_thread(write)
        except DeployError as error:
            self.app.push_screen(error_dialog(error))
            return
        self.notify(f"Written: {written}", markup=False)
