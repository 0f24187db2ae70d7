"""The live screen from the keyboard: state first, then text."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.geometry import Region
from textual.widgets import Input

from deploytui.record.events import SessionEnded, encode
from deploytui.record.fold import fold_all
from deploytui.session.control import Reply, Request
from deploytui.session.folder import SessionFolder
from deploytui.session.lock import SessionLock
from deploytui.tui.app import DeployApp
from deploytui.tui.headline import Standing
from deploytui.tui.messages import SnapshotReady
from deploytui.tui.pieces import text_of
from deploytui.tui.screens.live import LiveScreen
from deploytui.tui.screens.modals import Ask, PathPrompt, Say
from deploytui.tui.widgets.grid import CandidateGrid
from deploytui.tui.widgets.keys import KeyBar
from deploytui.tui.widgets.panel import LinePanel
from tests.tui.screens import app_on, context, live, until
from tests.tui.states import at, finished_events, many_events, measuring_events, rollups, simulated_events

pytestmark = pytest.mark.anyio
WIDE, NARROW = (120, 36), (80, 24)


def shown(screen: LiveScreen, panel: str) -> str:
    """The text of a panel, its lines joined."""
    return "\n".join(map(text_of, screen.query_one(f"#{panel}", LinePanel).shown))


def hints(screen: LiveScreen) -> str:
    return "\n".join(map(text_of, screen.query_one(KeyBar).query_one(LinePanel).shown))


def painting(monkeypatch: pytest.MonkeyPatch, grid: CandidateGrid) -> list[Region]:
    """Which regions of the grid are asked to be painted from now on."""
    painted: list[Region] = []
    refresh = grid.refresh

    def watched(*regions: Region, **kwargs: bool) -> CandidateGrid:
        painted.extend(regions or (grid.size.region,))
        return refresh(*regions, **kwargs)

    monkeypatch.setattr(grid, "refresh", watched)
    return painted


def page(app: DeployApp) -> list[str]:
    """The whole window as text."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


async def test_one_look_tells_where_we_are_who_leads_and_what_is_decided() -> None:
    app = app_on(live(measuring_events()))
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        text = "\n".join(page(app))
    for part in ("measuring 3/4 · 02:42 · eta 03:15", "★ vllm-bf16", "✘ load_failed: oom", "Decision so far", "ACCEPT"):
        assert part in text


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


async def test_marked_candidates_stand_side_by_side_and_are_run_alone() -> None:
    started: list[tuple[Path, Sequence[str]]] = []

    def start(path: Path, options: Sequence[str]) -> SessionFolder:
        started.append((path, options))
        return SessionFolder(Path("/nonexistent/new"))

    screen = live(finished_events(), "ended")
    screen.context = replace(screen.context, start=start)
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.press("home", "space", "down", "space", "2")
        await pilot.pause()
        assert screen.marked == ("vllm-bf16", "vllm-fp8")
        assert shown(screen, "tab").count("TTFT") == 2
        await pilot.press("r")
        await until(lambda: isinstance(app.screen, Ask))
        await pilot.press("r")
        await until(lambda: bool(started) and app.screen is not screen)
        assert isinstance(app.screen, LiveScreen)
        assert app.screen.folder == SessionFolder(Path("/nonexistent/new"))
    assert started == [(Path("/nonexistent/session/profile.toml"), ["--only", "vllm-bf16", "--only", "vllm-fp8"])]


async def test_a_run_that_can_not_be_started_says_why_in_a_dialog() -> None:
    app = app_on(live(finished_events(), "ended"))
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("r", "r")
        await until(lambda: isinstance(app.screen, Say))
        text = "\n".join(page(app))
        assert "can't be run here." in text
        assert "→ Start it elsewhere." in text


async def test_programs_never_confirmed_here_are_shown_and_asked_for() -> None:
    from deploytui.errors import UsageError

    asked: list[Sequence[str]] = []

    def start(path: Path, options: Sequence[str]) -> SessionFolder:
        asked.append(list(options))
        if "--trust" not in options:
            raise UsageError("It names programs:\n  a: command = rm -rf [/]", fix="Look, then run again with --trust.")
        return SessionFolder(Path("/nonexistent/new"))

    screen = live(finished_events(), "ended")
    screen.context = replace(screen.context, start=start)
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("r", "r")
        await until(lambda: isinstance(app.screen, Ask) and app.screen.heading == "Trust this profile")
        await pilot.pause()
        assert "a: command = rm -rf [/]" in "\n".join(page(app))
        await pilot.press("enter")
        assert asked == [[]]
        await pilot.press("t")
        await until(lambda: len(asked) == 2)
    assert asked == [[], ["--trust"]]


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


async def test_quitting_while_it_measures_asks_and_back_stays() -> None:
    screen = live(measuring_events())
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("q")
        await until(lambda: isinstance(app.screen, Ask))
        await pilot.pause()
        assert "3 finished repeats are on disk" in " ".join("\n".join(page(app)).split())
        await pilot.press("escape")
        assert app.screen is screen
        await pilot.press("q")
        await until(lambda: isinstance(app.screen, Ask))
        await pilot.press("k")
        await until(lambda: app._exit)
    assert app.return_code == 0


async def test_quitting_when_nothing_runs_asks_nothing() -> None:
    app = app_on(live(finished_events(), "ended"))
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("q")
        await until(lambda: app._exit)


async def test_words_reach_the_runner_and_its_end_is_passed_on(tmp_path: Path) -> None:
    import anyio

    from deploytui.session.control_server import serve_control

    folder = SessionFolder(tmp_path)
    folder.journal.write_bytes(b"".join(map(encode, measuring_events())))
    heard: list[Request] = []

    def obey(request: Request) -> Reply:
        heard.append(request)
        if request.word == "cancel":
            with folder.journal.open("ab") as file:
                file.write(encode(SessionEnded(at_ns=at(170), exit_status=130)))
        return Reply(ok=True)

    app = app_on(LiveScreen(context(), folder))
    with SessionLock.acquire(folder):
        async with anyio.create_task_group() as group:
            await group.start(lambda task_status: serve_control(folder, obey, task_status=task_status))
            async with app.run_test(size=NARROW) as pilot:
                screen = app.screen
                assert isinstance(screen, LiveScreen)
                await until(lambda: screen.grid.selected == "vllm-fp8")
                await pilot.press("p")
                await until(lambda: len(heard) == 1)
                await pilot.press("x", "enter", "x")
                await until(lambda: len(heard) == 2)
                await pilot.press("q", "s")
                await until(lambda: app._exit)
            group.cancel_scope.cancel()
    assert [(request.word, request.candidate) for request in heard] == [
        ("pause", None),
        ("skip", "vllm-fp8"),
        ("cancel", None),
    ]
    assert app.outcome == 130


async def test_a_word_nobody_hears_is_an_error_in_words(tmp_path: Path) -> None:
    app = app_on(live(measuring_events(), folder=SessionFolder(tmp_path)))
    async with app.run_test(size=NARROW) as pilot:
        await pilot.press("X")
        await until(lambda: isinstance(app.screen, Ask))
        await pilot.press("enter")
        assert isinstance(app.screen, Ask), "enter alone never cancels"
        await pilot.press("X")
        await until(lambda: isinstance(app.screen, Say))


async def test_a_session_that_ends_shows_its_decision_and_stays(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    whole = finished_events()
    folder.journal.write_bytes(b"".join(map(encode, whole[:-2])))
    screen = LiveScreen(context(), folder)
    app = app_on(screen)
    with SessionLock.acquire(folder):
        async with app.run_test(size=WIDE) as pilot:
            await until(lambda: screen.grid.selected is not None)
            with folder.journal.open("ab") as file:
                file.write(b"".join(map(encode, whole[-2:])))
            await until(lambda: screen.standing is not None and screen.standing.source == "ended")
            await pilot.pause()
            assert "ACCEPT" in shown(screen, "decision")
            assert "finished" in shown(screen, "header")
            assert screen.query_one("#decision-box").border_title == "Decision"
    assert app.outcome == 0


async def test_a_profile_is_saved_and_the_result_exported_where_the_user_says(tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path / "session")
    folder.path.mkdir()
    folder.journal.write_bytes(b"".join(map(encode, finished_events())))
    folder.profile.write_text(PROFILE, encoding="utf-8")
    screen = LiveScreen(context(profiles=tmp_path / "profiles"), folder)
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await until(lambda: screen.grid.selected is not None)
        await pilot.press("s")
        await until(lambda: isinstance(app.screen, PathPrompt))
        await pilot.press("enter")
        saved = tmp_path / "profiles" / "qwen-chat-2026-01-02.toml"
        await until(saved.is_file)
        await until(lambda: app.screen is screen)
        await pilot.press("e")
        await until(lambda: isinstance(app.screen, PathPrompt))
        app.screen.query_one(Input).value = str(tmp_path / "result.json")
        await pilot.press("enter")
        await until((tmp_path / "result.json").is_file)
    assert "[[results]]" in saved.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "result.json").read_bytes())["schema"] == "deploytui.result/1"


async def test_a_file_that_exists_is_replaced_only_after_a_second_enter(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text("mine", encoding="utf-8")
    prompt = PathPrompt("Export", there)
    given: list[Path | None] = []
    app = app_on(live(finished_events(), "ended"))
    async with app.run_test(size=NARROW) as pilot:
        app.push_screen(prompt, given.append)
        await pilot.press("enter")
        await pilot.pause()
        assert not given
        assert "This file exists." in "\n".join(page(app))
        await pilot.press("enter")
        await until(lambda: bool(given))
    assert given == [there]


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
