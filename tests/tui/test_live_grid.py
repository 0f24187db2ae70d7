"""The grid of the live screen: what is selected, what is painted."""

import re

import pytest
from textual.geometry import Region
from textual.widgets import Input

from deploytui.record.fold import fold_all
from deploytui.tui.headline import Standing
from deploytui.tui.messages import SnapshotReady
from deploytui.tui.widgets.grid import CandidateGrid
from deploytui.tui.widgets.panel import LinePanel
from tests.tui.candidates import rollups
from tests.tui.screens import NARROW, WIDE, app_on, live, page
from tests.tui.states import finished_events, many_events, measuring_events

pytestmark = pytest.mark.anyio


def painting(monkeypatch: pytest.MonkeyPatch, grid: CandidateGrid) -> list[Region]:
    """Which regions of the grid are asked to be painted from now on."""
    painted: list[Region] = []
    refresh = grid.refresh

    def watched(*regions: Region, **kwargs: bool) -> CandidateGrid:
        painted.extend(regions or (grid.size.region,))
        return refresh(*regions, **kwargs)

    monkeypatch.setattr(grid, "refresh", watched)
    return painted


async def test_the_selection_follows_what_is_measured_until_a_user_chooses() -> None:
    screen = live(measuring_events())
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        assert screen.grid.selected == "vllm-fp8"
        await pilot.press("down")
        assert screen.grid.selected == "sglang-bf16"
        screen.tick()
        await pilot.pause()
        assert screen.grid.selected == "sglang-bf16"
        await pilot.press("f")
        assert screen.grid.selected == "vllm-fp8"


async def test_one_row_is_selected_on_the_window_as_in_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = live(finished_events(), "ended")
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("home")
        await pilot.pause()
        painted = painting(monkeypatch, screen.grid)
        await pilot.press("down")
        await pilot.pause()
        assert {region.y for region in painted} == {1, 2}
        assert [row.strip()[0:1] for row in page(app)[4:8]].count("›") == 1


async def test_the_selected_row_is_always_in_view() -> None:
    screen = live(many_events(40))
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("home", *["down"] * 39)
        assert screen.grid.selected == "candidate-039"
        assert any("› " in row and "candidate-039" in row for row in page(app))
        await pilot.press("home")
        assert any("› " in row and "candidate-000" in row for row in page(app))


async def test_only_changed_cells_are_painted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = live(measuring_events())
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        painted = painting(monkeypatch, screen.grid)
        assert screen.standing is not None
        newer = fold_all(rollups("vllm-fp8", begin=164, count=1, rate=999, gib=44, gpu=True), screen.standing.state)
        screen.post_message(SnapshotReady(Standing(newer, "running")))
        await pilot.pause()
        assert {region.y for region in painted} == {2}
        assert max(region.width for region in painted) < 20


async def test_nothing_is_painted_when_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = live(finished_events(), "ended")
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        painted: list[str | None] = []
        for widget in (*screen.query(LinePanel), screen.grid):
            monkeypatch.setattr(widget, "refresh", lambda *_, name=widget.id, **__: painted.append(name))
        screen.tick()
        screen.show_all()
        await pilot.pause()
        assert painted == []


async def test_another_theme_paints_everything_anew() -> None:
    screen = live(finished_events(), "ended")
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        before = app.export_screenshot()
        app.theme = "deploytui-light"
        await pilot.pause()
        once = app.export_screenshot()
        screen.refresh(layout=True)
        await pilot.pause()
        assert once != before
        assert colours(once) == colours(app.export_screenshot())


def colours(svg: str) -> set[str]:
    return set(re.findall(r"#[0-9a-f]{6}", svg))


async def test_the_filter_shows_matching_rows_and_escape_all_of_them() -> None:
    screen = live(finished_events(), "ended")
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("slash", *"gguf")
        await pilot.pause()
        assert [row.name for row in screen.grid.rows] == ["gguf-q4"]
        assert screen.grid.selected == "gguf-q4"
        await pilot.press("enter", "escape")
        await pilot.pause()
        assert len(screen.grid.rows) == 4
        assert screen.query_one("#filter", Input).value == ""


async def test_two_hundred_candidates_cost_a_tick_no_more_than_their_window() -> None:
    screen = live(many_events(200))
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        before = dict(screen.grid._strips)
        screen.tick()
        await pilot.pause()
        assert len(before) <= WIDE[1]
        assert screen.grid._strips == before
