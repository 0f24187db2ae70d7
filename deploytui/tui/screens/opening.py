"""From a profile file to the screen that fits it."""

from pathlib import Path

from textual.screen import Screen

from deploytui.export.reopen import state_from_saved
from deploytui.profile.files import read_profile
from deploytui.tui.context import Context
from deploytui.tui.headline import Standing
from deploytui.tui.screens.live import LiveScreen
from deploytui.tui.screens.plan import PlanScreen


def profile_screen(context: Context, path: Path) -> Screen[None]:
    """The recorded results of a saved profile, or the plan of one to run; ProfileError when it can't be read."""
    profile = read_profile(path)
    if not profile.saved:
        return PlanScreen(context, path, profile)
    standing = Standing(state_from_saved(profile), "saved", name=profile.name)
    return LiveScreen(context, standing=standing, saved=path)
