"""The application: which screen, which colours, and a clean end whatever ends it."""

import sys
from collections.abc import Iterable
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.screen import Screen

from deploytui.errors import DeployError
from deploytui.session.folder import SessionFolder
from deploytui.tui.context import Context, Start
from deploytui.tui.ending import end_cleanly
from deploytui.tui.messages import OpenProfile, OpenSession, SessionOver
from deploytui.tui.pieces import TONES
from deploytui.tui.screens.live import LiveScreen
from deploytui.tui.screens.modals import error_dialog
from deploytui.tui.screens.opening import profile_screen
from deploytui.tui.screens.session import SessionScreen
from deploytui.tui.screens.start import StartScreen
from deploytui.tui.theme import DARK, LIGHT, first_theme


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

    def __init__(self, context: Context, first: Screen[None] | None = None) -> None:
        super().__init__()
        self.context, self.first = context, first
        self.outcome = 0
        """Exit status of the session that ended while it was watched."""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        self.theme = first_theme(self.console.color_system)

    def on_mount(self) -> None:
        """Open the first screen; a signal ends the app like `q`, so that the terminal is put back."""
        self.push_screen(self.first or StartScreen(self.context))
        end_cleanly(self)

    async def action_quit(self) -> None:
        """Quit as the screen would: asked for while it measures."""
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

    def on_open_session(self, message: OpenSession) -> None:
        """Show a session, in place of another one."""
        self.show(LiveScreen(self.context, message.folder))

    def on_open_profile(self, message: OpenProfile) -> None:
        """Show a profile's results, or its plan."""
        try:
            self.show(profile_screen(self.context, message.path))
        except DeployError as error:
            self.push_screen(error_dialog(error))

    def show(self, screen: Screen[None]) -> None:
        """Put a screen above the list, in place of another session or plan."""
        if isinstance(self.screen, StartScreen):
            self.push_screen(screen)
        else:
            self.switch_screen(screen)

    def on_session_over(self, message: SessionOver) -> None:
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
    app = DeployApp(context, _first_screen(context, session, profile, begin=begin))
    _speak_utf8()
    app.run()
    return app.return_code or app.outcome


def _first_screen(
    context: Context, session: SessionFolder | None, profile: Path | None, *, begin: bool
) -> Screen[None] | None:
    if session is None and profile is not None and begin:
        screen = LiveScreen(context, context.start(profile, ()))
        screen.ran_here = True
        return screen
    if session is not None:
        return LiveScreen(context, session)
    return profile_screen(context, profile) if profile is not None else None


def _speak_utf8() -> None:
    """The screen has bars and signs whatever the locale says; Textual writes to standard error."""
    if isinstance(sys.__stderr__, TextIOWrapper):
        sys.__stderr__.reconfigure(encoding="utf-8", errors="replace")
