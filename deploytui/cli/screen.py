"""The screen, where there is a terminal for it."""

import os
import sys
from pathlib import Path
from typing import Any


def has_screen() -> bool:
    """Whether a screen can be drawn here."""
    terminal = os.environ.get("TERM", "") not in ("", "dumb")
    return terminal and sys.stdin.isatty() and sys.stdout.isatty()


def open_screen(state: Path, *, profile: Path | None = None, session: Any = None, begin: bool = False) -> int:
    """The screen; without a terminal a word on what to do instead."""
    if not has_screen():
        from deploytui.session.naming import no_screen

        raise no_screen(profile, session)
    from deploytui.run.starting import starter
    from deploytui.tui.app import run_screen

    return run_screen(session, state=state, start=starter(state), profile=profile, begin=begin)
