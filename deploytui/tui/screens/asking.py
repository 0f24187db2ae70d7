"""What several screens ask or tell: before a run is started, and when something did not work."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from textual.screen import Screen

from deploytui.errors import DeployError
from deploytui.tui.context import Context
from deploytui.tui.messages import OpenSession
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.screens.modals import Ask, Choice, error_dialog, error_lines
from deploytui.tui.threads import in_thread

RUN = (Choice("r", "run", "run"),)
TRUST = "--trust"
TRUST_IT = (Choice("t", "trust it and run", "trust"),)


async def ask_and_start(
    screen: Screen[None], context: Context, path: Path, what: str, names: Sequence[str] = (), note: str = ""
) -> None:
    """Ask, start a detached runner, and show its session; an error is shown in place of it. For a worker only."""
    only = f"only {', '.join(map(visible, names))}" if names else "all candidates"
    lines: list[Line] = [line(f"Measure {visible(what)}: {only}."), line(Piece(visible(str(path)), "dim"))]
    lines += [(), line(note)] if note else []
    if await screen.app.push_screen_wait(Ask("Start a run", lines, RUN, enter="run")) == "run":
        await start_now(screen, context, path, [word for name in names for word in ("--only", name)])


async def start_now(screen: Screen[None], context: Context, path: Path, options: Sequence[str] = ()) -> None:
    """Start a detached runner and show its session; an error is shown in place of it. For a worker only.

    A profile whose programs were never confirmed here is refused with the option that confirms them: then the user is
    shown what would run, and asked.
    """
    screen.notify("Starting the runner …", markup=False, timeout=3)
    try:
        folder = await in_thread(partial(context.start, path, options))
    except DeployError as error:
        if TRUST not in error.text() or TRUST in options:
            screen.app.push_screen(error_dialog(error))
        elif await screen.app.push_screen_wait(Ask("Trust this profile", error_lines(error), TRUST_IT)):
            await start_now(screen, context, path, [*options, TRUST])
        return
    screen.post_message(OpenSession(folder))
