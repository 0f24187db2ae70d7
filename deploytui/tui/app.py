"""The application: which screen, which colours, and a clean end whatever ends it."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from deploytui.errors import DeployError
from deploytui.session.folder import SessionFolder
from deploytui.tui.context import Context, Start
from deploytui.tui.ending import end_cleanly
from deploytui.tui.pieces import TONES
from deploytui.tui.theme import DARK, LIGHT, first_theme

if TYPE_CHECKING:
    from deploytui.tui.messages import OpenProfile, OpenSession, SessionOver

Opening = Callable[[], Awaitable[Screen[None]]]
"""Makes the first screen once the app has drawn that it is opening: imports and a start take a while.

Raises DeployError.
"""
OPENING = " deploytui  opening …"


class DeployApp(App[None]):
    """Shows a session, a profile, or the list of both."""

    TITLE = "deploytui"
    CSS_PATH = "app.tcss"
    COMPONENT_CLASSES = {f"tone--{tone}" for tone in TONES}
    BINDINGS = [
        Binding(
            "ctrl+p", "command_palette", "Palette", show=False, priority=True, id="app.palette", tooltip="All commands"
        )
    ]

    def __init__(self, context: Context, first: Screen[None] | Opening | None = None) -> None:
        super().__init__()
        self.context, self.first = context, first
        self.trouble: DeployError | None = None
        """Why the first screen could not be opened."""
        self.outcome = 0
        """Exit status of the session that ended while it was watched."""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = first_theme(self.console.color_system)

    def on_mount(self) -> None:
        """Open the first screen; a signal ends the app like `q`, so that the terminal is put back."""
        end_cleanly(self)
        if isinstance(self.first, Screen):
            self.push_screen(self.first)
        else:
            self.call_after_refresh(self._open_first)

    def compose(self) -> ComposeResult:
        """What stands there until the first screen does."""
        yield Static(OPENING, markup=False)

    async def _open_first(self) -> None:
        make = self.first if callable(self.first) else partial(_list_screen, self.context)
        try:
            await self.push_screen(await make())
        except DeployError as error:
            self.trouble = error
            self.exit(return_code=error.exit_code)

    async def action_quit(self) -> None:
        """Quit as the screen would: asked for while it measures."""
        from deploytui.tui.screens.session import SessionScreen

        if isinstance(self.screen, SessionScreen):
            await self.run_action("leave", self.screen)
        else:
            self.exit()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Textual's own commands, then an entry for every key that works now."""
        yield from super().get_system_commands(screen)
        for node, binding, enabled, tooltip in {b.binding.id: b for b in screen.active_bindings.values()}.values():
            if enabled and binding.id and tooltip and binding.id != "app.palette":
                yield SystemCommand(binding.description, tooltip, partial(self.run_action, binding.action, node))

    def on_open_session(self, message: "OpenSession") -> None:
        """Show a session, in place of another one."""
        from deploytui.tui.screens.live import LiveScreen

        self.show(LiveScreen(self.context, message.folder))

    def on_open_profile(self, message: "OpenProfile") -> None:
        """Show a profile's results, or its plan."""
        from deploytui.tui.screens.modals import error_dialog
        from deploytui.tui.screens.opening import profile_screen

        try:
            self.show(profile_screen(self.context, message.path))
        except DeployError as error:
            self.push_screen(error_dialog(error))

    def show(self, screen: Screen[None]) -> None:
        """Put a screen above the list, in place of another session or plan."""
        from deploytui.tui.screens.start import StartScreen

        if isinstance(self.screen, StartScreen):
            self.push_screen(screen)
        else:
            self.switch_screen(screen)

    def on_session_over(self, message: "SessionOver") -> None:
        """Keep the exit status; leave when nobody wants to look at the end."""
        self.outcome = message.exit_status
        if message.leave or not self.context.stay:
            self.exit()


def run_screen(
    session: SessionFolder | None = None,
    *,
    state: Path,
    start: Start,
    profile: Path | None = None,
    profiles_dir: Path = Path("profiles"),
    begin: bool = False,
    stay: bool = True,
) -> int:
    """Run the screen to its end; the exit status: that of a session that ended in it, else 0, else what went wrong.

    Opens the session, or the profile (`begin` starts it at once), or the list of both; DeployError when they can't be
    opened.
    """
    context = Context(state=state, profiles=profiles_dir, start=start, stay=stay)
    app = DeployApp(context, partial(_first_screen, context, session, profile, begin=begin))
    _speak_utf8()
    app.run()
    if app.trouble is not None:
        raise app.trouble
    return app.return_code or app.outcome


async def _first_screen(
    context: Context, session: SessionFolder | None, profile: Path | None, *, begin: bool
) -> Screen[None]:
    if session is None and profile is None:
        return await _list_screen(context)
    ran_here = False
    if session is None and profile is not None and begin:
        session, ran_here = await asyncio.to_thread(context.start, profile, ()), True
    from deploytui.tui.screens.live import LiveScreen
    from deploytui.tui.screens.opening import profile_screen

    if session is None and profile is not None:
        return profile_screen(context, profile)
    screen = LiveScreen(context, session)
    screen.ran_here = ran_here
    return screen


async def _list_screen(context: Context) -> Screen[None]:
    from deploytui.tui.screens.start import StartScreen

    return StartScreen(context)


def _speak_utf8() -> None:
    """The screen has bars and signs whatever the locale says; Textual writes to standard error."""
    if isinstance(sys.__stderr__, TextIOWrapper):
        sys.__stderr__.reconfigure(encoding="utf-8", errors="replace")
