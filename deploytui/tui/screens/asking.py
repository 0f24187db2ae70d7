"""What several screens ask or tell: before a run is started, and when something did not work."""

from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread
from textual.screen import Screen

from deploytui.errors import DeployError
from deploytui.tui.context import Context
from deploytui.tui.messages import OpenSession
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.screens.modals import Ask, Choice, error_dialog

RUN = (Choice("r", "run", "run"),)


async def ask_and_start(
    screen: Screen[None], context: Context, path: Path, what: str, names: Sequence[str] = (), note: str = ""
) -> None:
    """Ask, start a detached runner, and show its session; an error is shown in place of it. For a worker only."""
    only = f"only {', '.join(map(visible, names))}" if names else "all candidates"
    lines: list[Line] = [line(f"Measure {visible(what)}: {only}."), line(Piece(visible(str(path)), "dim"))]
    lines += [(), line(note)] if note else []
    if await screen.app.push_screen_wait(Ask("Start a run", lines, RUN)) == "run":
        await start_now(screen, context, path, names)


async def start_now(screen: Screen[None], context: Context, path: Path, names: Sequence[str] = ()) -> None:
    """Start a detached runner and show its session; an error is shown in place of it. For a worker only."""
    screen.notify("Starting the runner …", markup=False, timeout=3)
    try:
        folder = await to_thread.run_sync(context.start, path, names, abandon_on_cancel=True)
    except DeployError as error:
        screen.app.push_screen(error_dialog(error))
        return
    screen.post_message(OpenSession(folder))
