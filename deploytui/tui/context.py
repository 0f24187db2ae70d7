"""What the screens are given by the command line: where things lie, how a run is started, what time it is."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from deploytui.session.folder import SessionFolder

Start = Callable[[Path, Sequence[str]], SessionFolder]
"""Starts a detached runner for a profile with further options of `deploytui run`; blocks until it is ready.

Raises DeployError.
"""


class Context(Struct, frozen=True, kw_only=True):
    """The world outside the screen."""

    state: Path
    """Folder of all sessions."""
    profiles: Path
    start: Start
    stay: bool = True
    """Whether the screen stays when the session it shows has ended."""
    wall: Callable[[], float] = time.time
