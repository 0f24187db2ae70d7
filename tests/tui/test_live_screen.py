"""The live screen from the keyboard: state first, then text."""

from pathlib import Path

import pytest

from deploytui.session.folder import SessionFolder
from deploytui.tui.screens.modals import Say
from tests.tui.facts import at
from tests.tui.screens import NARROW, WIDE, app_on, hints, live, page, shown, until
from tests.tui.states import finished_events, measuring_events, simulated_events

pytestmark = pytest.mark.anyio


async def test_one_look_tells_where_we_are_who_leads_and_what_is_decided() -> None:
    app = app_on(live(measuring_events()))
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        text = "\n".join(page(app))
    for part in ("measuring 3/4 · 02:42 · eta 03:15", "★ vllm-bf16", "✘ load_failed: oom", "Decision so far", "ACCEPT"):
        assert part in text


@pytest.mark.parametrize(
    ("key", "tab", "text"),
    [
        ("2", "Latency", "TTFT"),
        ("4", "Config", "bfloat16 → fp8"),
        ("5", "Quality", "builtin:basic"),
        ("6", "Decision", "fallback  vllm-bf16"),
        ("1", "Live", "phases"),
    ],
)
async def test_tabs_open_by_number(key: str, tab: str, text: str) -> None:
    screen = live(finished_events(), "ended")
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("down", key)
        await pilot.pause()
        assert screen.tab == tab
        assert text in shown(screen, "tab")


async def test_tab_goes_round_the_tabs() -> None:
    screen = live(finished_events(), "ended")
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("shift+tab")
        assert screen.tab == "Decision"
        await pilot.press("tab", "tab")
        assert screen.tab == "Latency"


async def test_a_log_is_shown_as_it_was_written(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    logs = folder.candidate_dir("vllm-fp8")
    logs.mkdir(parents=True)
    (logs / "engine.log").write_bytes(b"ERROR [/tool] failed [core.py:712] [bold]\n\x1b[31mred\n")
    screen = live(measuring_events(), folder=folder)
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("3")
        await until(lambda: "core.py" in shown(screen, "log"))
        assert "ERROR [/tool] failed [core.py:712] [bold]\n␛[31mred" in shown(screen, "log")


async def test_explain_tells_the_number_under_the_cursor() -> None:
    screen = live(finished_events(), "ended")
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("home", "left", "i")
        await until(lambda: isinstance(app.screen, Say))
        await pilot.pause()
        assert "output tokens of successful requests" in " ".join(" ".join(page(app)).split())
        await pilot.press("escape", "right", "right", "i")
        await until(lambda: isinstance(app.screen, Say))
        await pilot.pause()
        assert "TPOT p95 of vllm-bf16" in "\n".join(page(app))


async def test_keys_that_make_no_sense_are_not_offered() -> None:
    running, over = live(measuring_events()), live(finished_events(), "ended")
    async with app_on(running).run_test(size=WIDE) as pilot:
        await pilot.pause()
        assert "x skip  X cancel  p pause  d detach" in hints(running)
        assert "r run" not in hints(running)
    async with app_on(over).run_test(size=WIDE) as pilot:
        await pilot.pause()
        assert "r run" in hints(over)
        assert "cancel" not in hints(over)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
async def test_no_key_hint_is_cut(width: int) -> None:
    screen = live(measuring_events())
    async with app_on(screen).run_test(size=(width, 24)) as pilot:
        await pilot.pause()
        assert len(hints(screen)) <= width
        assert hints(screen).rstrip().endswith("? help  q quit  ^p")


SIZES = [(200, 60), (120, 36), (80, 24), (60, 15), (59, 15), (40, 8), (20, 5), (8, 2)]


async def test_every_window_size_shows_what_it_can() -> None:
    screen = live(measuring_events())
    app = app_on(screen)
    async with app.run_test(size=(120, 36)) as pilot:
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            rows = page(app)
            assert len(rows) == size[1]
            assert "meas" in "".join(rows)
            assert screen.has_class("-small") == (size[0] < 60 or size[1] < 15)


async def test_simulated_is_stamped_at_every_width() -> None:
    for size in (WIDE, NARROW, (60, 15), (40, 8)):
        app = app_on(live(simulated_events()))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            assert "SIMULATED" in "\n".join(page(app))


async def test_names_of_others_never_break_the_screen() -> None:
    from deploytui.record.events import Planned
    from deploytui.record.planned import PlannedCandidate

    odd = ("a[b]c", "[/bold]", "x\x1b]0;title\x07", "模型-7b", "[@click=app.quit]q[/]")
    rows = tuple(PlannedCandidate(name=name, engine="[red]", artifact="[/]") for name in odd)
    planned = Planned(at_ns=at(1), candidates=rows, steps=(), workload_key="k")
    screen = live([*measuring_events()[:2], planned])
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        text = "\n".join(page(app))
        for name in ("a[b]c", "[/bold]", "x␛]0;title␇", "模型-7b", "[@click=app.quit]q[/]"):
            assert name in text
        for key in ("1", "2", "3", "4", "5", "6", "i"):
            await pilot.press(key, "down")
