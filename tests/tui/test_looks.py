"""Pictures of the screens; look at a changed one before it is accepted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from deploytui.profile.parse import parse_profile
from deploytui.tui.screens.plan import PlanScreen
from deploytui.tui.screens.start import StartScreen
from tests.tui.screens import PROFILE, app_on, context, live
from tests.tui.states import (
    cpu_events,
    finished_events,
    many_events,
    measuring_events,
    open_loop_events,
    simulated_events,
)

Compare = Callable[..., bool]
WIDE, NARROW = (120, 36), (80, 24)

LOOKS: dict[str, tuple[Callable[[], Screen[None]], tuple[int, int], str, tuple[str, ...]]] = {
    "measuring-wide-dark": (lambda: live(measuring_events()), WIDE, "deploytui-dark", ()),
    "measuring-narrow-light": (lambda: live(measuring_events()), NARROW, "deploytui-light", ()),
    "finished-wide-light": (lambda: live(finished_events(), "ended"), WIDE, "deploytui-light", ()),
    "finished-narrow-dark": (lambda: live(finished_events(), "ended"), NARROW, "deploytui-dark", ("6",)),
    "cpu-host-narrow-dark": (lambda: live(cpu_events()), NARROW, "deploytui-dark", ()),
    "simulated-narrow-dark": (lambda: live(simulated_events()), NARROW, "deploytui-dark", ()),
    "died-narrow-dark": (lambda: live(measuring_events(), "died"), NARROW, "deploytui-dark", ("2",)),
    "latency-wide-dark": (lambda: live(open_loop_events(), "ended"), WIDE, "deploytui-dark", ("2",)),
    "latency-narrow-dark": (
        lambda: live(open_loop_events(client_bound=True), "ended"),
        NARROW,
        "deploytui-dark",
        ("2", "z"),
    ),
    "many-wide-dark": (lambda: live(many_events()), WIDE, "deploytui-dark", ("end",)),
    "sixteen-colours-wide": (lambda: live(finished_events(), "ended"), WIDE, "ansi-dark", ("down",)),
    "quit-narrow-dark": (lambda: live(measuring_events()), NARROW, "deploytui-dark", ("q",)),
    "empty-narrow-dark": (lambda: StartScreen(context()), NARROW, "deploytui-dark", ()),
}


@pytest.mark.parametrize("name", LOOKS)
def test_looks(snap_compare: Compare, name: str) -> None:
    make, size, theme, keys = LOOKS[name]

    async def settle(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await pilot.press(*keys)
        if reading := [worker for worker in pilot.app.workers if worker.group == "reload"]:
            await pilot.app.workers.wait_for_complete(reading)
        await pilot.pause()

    assert snap_compare(app_on(make(), theme), terminal_size=size, run_before=settle)


def test_looks_of_a_plan(snap_compare: Compare) -> None:
    screen = PlanScreen(context(), Path("profiles/qwen-chat.toml"), parse_profile(PROFILE, "qwen-chat.toml"))
    assert snap_compare(app_on(screen), terminal_size=NARROW)
