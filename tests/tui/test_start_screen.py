"""Started on nothing: sessions, profiles, what to do where there are none; profiles opened by name."""

from pathlib import Path

import pytest
from textual.app import App

from deploytui.export.saved import save_session
from deploytui.profile.places import demo_path
from deploytui.record.events import AnyEvent, encode
from deploytui.session.folder import SessionFolder
from deploytui.tui.pieces import text_of
from deploytui.tui.screens.live import LiveScreen
from deploytui.tui.screens.modals import Ask, Say
from deploytui.tui.screens.opening import profile_screen
from deploytui.tui.screens.plan import PlanScreen
from deploytui.tui.screens.start import StartScreen
from deploytui.tui.widgets.panel import LinePanel
from tests.tui.screens import NARROW, PROFILE, app_on, context, page, until
from tests.tui.states import finished_events, simulated_events

pytestmark = pytest.mark.anyio


@pytest.fixture
def state(tmp_path: Path) -> Path:
    put(tmp_path / "state", "20260102-100000-qwen-chat-ab12", finished_events())
    put(tmp_path / "state", "20260102-110000-rehearsal-ab13", simulated_events())
    return tmp_path / "state"


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "demo.toml").write_text(demo_path().read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "odd[x].toml").write_text("nam = 1\n", encoding="utf-8")
    return folder


def put(state: Path, name: str, events: list[AnyEvent]) -> SessionFolder:
    folder = SessionFolder(state / name)
    folder.path.mkdir(parents=True)
    folder.journal.write_bytes(b"".join(map(encode, events)))
    folder.profile.write_text(PROFILE, encoding="utf-8")
    return folder


async def ready(app: App[None], rows: int) -> StartScreen:
    """The start screen once it has read so many sessions."""
    screen = app.screen
    assert isinstance(screen, StartScreen)
    await until(lambda: screen.sessions.row_count == rows)
    return screen


async def test_sessions_and_profiles_are_listed_with_what_became_of_them(state: Path, profiles: Path) -> None:
    app = app_on(StartScreen(context(state=state, profiles=profiles)))
    async with app.run_test(size=NARROW) as pilot:
        screen = await ready(app, 2)
        await until(lambda: screen.profiles.row_count == 2)
        await pilot.pause()
        text = "\n".join(page(app))
    assert "qwen-chat" in text
    assert "✔ accept vllm-bf16" in text
    assert "SIMULATED ✔ accept vllm-bf16 so far" in text
    assert "odd[x].toml" in text
    assert "`nam` is not a known key" in text
    assert "open" in text.splitlines()[-1]


async def test_an_empty_state_says_what_to_do() -> None:
    app = app_on(StartScreen(context()))
    async with app.run_test(size=NARROW) as pilot:
        await until(lambda: bool(app.screen.query_one("#hint", LinePanel).shown))
        await pilot.pause()
        assert "deploytui demo" in "\n".join(map(text_of, app.screen.query_one("#hint", LinePanel).shown))
        await pilot.press("enter", "r", "tab", "down")
        assert isinstance(app.screen, StartScreen)


async def test_enter_opens_a_session_and_escape_comes_back(state: Path, profiles: Path) -> None:
    app = app_on(StartScreen(context(state=state, profiles=profiles)))
    async with app.run_test(size=NARROW) as pilot:
        start = await ready(app, 2)
        await until(lambda: start.sessions.has_focus)
        row = next(place for place, row in enumerate(start.rows["sessions"]) if "qwen-chat" in row.key)
        await pilot.press(*["down"] * row, "enter")
        await until(lambda: isinstance(app.screen, LiveScreen))
        screen = app.screen
        assert isinstance(screen, LiveScreen)
        await until(lambda: screen.standing is not None and screen.standing.source == "ended")
        await pilot.press("escape")
        assert app.screen is start


async def test_enter_shows_what_a_profile_asks_for_and_r_asks_before_it_runs(state: Path, profiles: Path) -> None:
    app = app_on(StartScreen(context(state=state, profiles=profiles)))
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, 2)
        await pilot.press("tab", "enter")
        await until(lambda: isinstance(app.screen, PlanScreen))
        await pilot.pause()
        text = "\n".join(page(app))
        assert "builtin:basic" in text
        assert "TTFT p95 ≤" in text
        await pilot.press("r")
        await until(lambda: isinstance(app.screen, Ask))
        await pilot.press("escape", "escape")
        assert isinstance(app.screen, StartScreen)


async def test_a_broken_profile_opens_as_an_error_in_words(state: Path, profiles: Path) -> None:
    app = app_on(StartScreen(context(state=state, profiles=profiles)))
    async with app.run_test(size=NARROW) as pilot:
        await ready(app, 2)
        await pilot.press("tab", "down", "enter")
        await until(lambda: isinstance(app.screen, Say))
        await pilot.pause()
        assert "is not a known key" in "\n".join(page(app))


async def test_the_filter_looks_in_both_lists(state: Path, profiles: Path) -> None:
    app = app_on(StartScreen(context(state=state, profiles=profiles)))
    async with app.run_test(size=NARROW) as pilot:
        screen = await ready(app, 2)
        await pilot.press("slash", *"demo")
        await until(lambda: screen.profiles.row_count == 1)
        assert screen.sessions.row_count == 0
        await pilot.press("enter", "escape")
        await until(lambda: screen.sessions.row_count == 2)


async def test_a_saved_profile_shows_its_results_without_the_session(state: Path, tmp_path: Path) -> None:
    folder = SessionFolder(state / "20260102-100000-qwen-chat-ab12")
    saved = save_session(folder, tmp_path / "saved.toml")
    screen = profile_screen(context(), saved)
    assert isinstance(screen, LiveScreen)
    app = app_on(screen)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        text = "\n".join(page(app))
        for part in (
            "saved results",
            "★ vllm-bf16",
            "182 ms",
            "✘ load_failed",
            "ACCEPT vllm-bf16",
            "r run",
            "e export",
        ):
            assert part in text
        assert "s save" not in text
        await pilot.press("3")
        await until(lambda: "saved results" in "\n".join(map(text_of, screen.query_one("#log", LinePanel).shown)))
        await pilot.press("r")
        await until(lambda: isinstance(app.screen, Ask))


async def test_every_control_can_be_reached_and_is_in_view(state: Path, profiles: Path) -> None:
    app = app_on(StartScreen(context(state=state, profiles=profiles)))
    async with app.run_test(size=NARROW) as pilot:
        screen = await ready(app, 2)
        await until(lambda: screen.sessions.has_focus)
        for table in (screen.profiles, screen.sessions):
            await pilot.press("tab")
            assert table.has_focus
            assert screen.region.contains_region(table.region)
