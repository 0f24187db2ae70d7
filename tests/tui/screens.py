"""Apps on fixed states, at a fixed time, and what they show."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import anyio
from textual.screen import Screen

from deploytui.errors import DeployError
from deploytui.record.events import AnyEvent
from deploytui.session.folder import SessionFolder
from deploytui.tui.app import DeployApp
from deploytui.tui.context import Context
from deploytui.tui.headline import Source, Standing
from deploytui.tui.pieces import text_of
from deploytui.tui.screens.live import LiveScreen
from deploytui.tui.widgets.keys import KeyBar
from deploytui.tui.widgets.panel import LinePanel
from tests.tui.facts import START, WALL
from tests.tui.states import state_of

NOWHERE = Path("/nonexistent")
WIDE, NARROW = (120, 36), (80, 24)
PROFILE = """
schema = 1
name = "qwen-chat"
baseline = "vllm-bf16"
[workload]
requests = 200
prompt_tokens = 1024
[[candidates]]
name = "vllm-bf16"
engine = "vllm"
model = "m"
[[candidates]]
name = "vllm-fp8"
engine = "vllm"
model = "m"
[[candidates]]
name = "sglang-bf16"
engine = "sglang"
model = "m"
[[candidates]]
name = "gguf-q4"
engine = "llamacpp"
model = "m"
"""


def no_start(path: Path, names: Sequence[str]) -> SessionFolder:
    """No runner can be started."""
    raise DeployError(
        f"{path} can't be run here.", why="Nothing may be started in this test.", fix="Start it elsewhere."
    )


def context(*, state: Path = NOWHERE, profiles: Path = NOWHERE, wall_s: float = WALL, stay: bool = True) -> Context:
    """A world whose clock stands still."""
    return Context(state=state, profiles=profiles, start=no_start, stay=stay, wall=lambda: wall_s)


def live(events: Iterable[AnyEvent], source: Source = "running", *, folder: SessionFolder | None = None) -> LiveScreen:
    """The live screen on a fixed state, at the time of its newest event."""
    state = state_of(events)
    wall_s = WALL + ((state.at_ns or START) - START) / 1e9
    standing = Standing(state, source)
    return LiveScreen(context(wall_s=wall_s), folder or SessionFolder(NOWHERE / "session"), standing=standing)


def app_on(screen: Screen[None], theme: str = "deploytui-dark") -> DeployApp:
    """An app that shows a screen."""
    app = DeployApp(getattr(screen, "context", context()), screen)
    app.theme = theme
    return app


async def until(true: Callable[[], object], limit_s: float = 10.0) -> None:
    """Wait for a state."""
    with anyio.fail_after(limit_s):
        while not true():  # noqa: ASYNC110 -- what is waited for tells nobody
            await anyio.sleep(0.02)


def shown(screen: LiveScreen, panel: str) -> str:
    """The text of a panel, its lines joined."""
    return "\n".join(map(text_of, screen.query_one(f"#{panel}", LinePanel).shown))


def hints(screen: LiveScreen) -> str:
    return "\n".join(map(text_of, screen.query_one(KeyBar).query_one(LinePanel).shown))


def page(app: DeployApp) -> list[str]:
    """The whole window as text."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]
