"""From a profile file to the screen that fits it."""

from pathlib import Path

from textual.screen import Screen

from deploytui.tui.context import Context
from deploytui.tui.headline import Standing
from deploytui.tui.screens.live import LiveScreen


def profile_screen(context: Context, path: Path) -> Screen[None]:
    """The recorded results of a saved profile, or the plan of one to run; ProfileError when it can't be read.

    Only here are the readers of profiles imported: a session's first frame does not wait for them.
    """
    from deploytui.profile.files import read_profile

    profile = read_profile(path)
    if not profile.saved:
        from deploytui.tui.screens.plan import PlanScreen

        return PlanScreen(context, path, profile)
    from deploytui.export.reopen import state_from_saved

    return LiveScreen(context, standing=Standing(state_from_saved(profile), "saved", name=profile.name), saved=path)
