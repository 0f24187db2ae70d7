"""A profile before it is run: what it asks for, and the key that runs it."""

from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from deploytui.profile.schema import Profile
from deploytui.tui.context import Context
from deploytui.tui.details.plan import plan_lines
from deploytui.tui.pieces import Piece, line, spread
from deploytui.tui.plain import visible
from deploytui.tui.screens.asking import ask_and_start
from deploytui.tui.screens.helping import help_lines
from deploytui.tui.screens.modals import Say
from deploytui.tui.widgets.keys import KeyBar
from deploytui.tui.widgets.panel import LinePanel

HINTS = {"plan.run": 0, "plan.back": 1, "plan.help": 1, "plan.quit": 1, "app.palette": 1}


class PlanScreen(Screen[None]):
    """Shows a profile; starts nothing by itself."""

    CSS_PATH = "plan.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r,enter", "run", "Run", id="plan.run", tooltip="Measure this profile as a new session"),
        Binding("escape", "back", "Back", id="plan.back", tooltip="Back to the list"),
        Binding("up,k", "scroll(-1)", "Up", show=False, id="plan.up", tooltip="Scroll up"),
        Binding("down,j", "scroll(1)", "Down", show=False, id="plan.down", tooltip="Scroll down"),
        Binding("pageup", "scroll(-10)", "Page up", show=False, id="plan.page_up", tooltip="Scroll up by a page"),
        Binding("pagedown", "scroll(10)", "Page down", show=False, id="plan.page_down", tooltip="Scroll by a page"),
        Binding("question_mark", "help", "Help", id="plan.help", tooltip="Keys, signs, and what the numbers mean"),
        Binding("q,ctrl+c", "leave", "Quit", id="plan.quit", tooltip="Quit"),
    ]

    def __init__(self, context: Context, path: Path, profile: Profile) -> None:
        super().__init__()
        self.context, self.path, self.profile = context, path, profile

    def compose(self) -> ComposeResult:
        """A line about the file and the plan below."""
        yield LinePanel(id="title", wrap=False)
        yield LinePanel(id="plan")
        yield KeyBar(HINTS)

    def on_resize(self) -> None:
        """Show the plan once the width is known."""
        self.call_after_refresh(self.show_plan)

    def show_plan(self) -> None:
        """Draw both."""
        name = line(Piece("deploytui", "mark"), "  ", Piece(visible(self.profile.name), "strong"))
        where = line(Piece(visible(str(self.path)), "dim"))
        self.query_one("#title", LinePanel).show([spread(name, where, max(self.size.width - 2, 0))])
        self.query_one("#plan", LinePanel).show(plan_lines(self.profile))

    @work(group="dialog")
    async def action_run(self) -> None:
        """Ask, then start."""
        await ask_and_start(self, self.context, self.path, self.profile.name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There is a way back only where a list lies below."""
        return len(self.app.screen_stack) > 2 if action == "back" else super().check_action(action, parameters)

    def action_back(self) -> None:
        """To the list."""
        self.app.pop_screen()

    def action_scroll(self, count: int) -> None:
        """Scroll by lines."""
        self.query_one("#plan", LinePanel).scroll_relative(y=count, animate=False)

    def action_help(self) -> None:
        """Keys, signs and words."""
        self.app.push_screen(Say("Help", help_lines(self.app, self)))

    def action_leave(self) -> None:
        """Quit."""
        self.app.exit()
