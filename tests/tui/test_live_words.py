"""What the live screen sets going: runs, words to the runner, files, and its end."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Input

from deploytui.record.events import SessionEnded, encode
from deploytui.session.control import Reply, Request
from deploytui.session.folder import SessionFolder
from deploytui.session.lock import SessionLock
from deploytui.tui.screens.live import LiveScreen
from deploytui.tui.screens.modals import Ask, PathPrompt, Say
from tests.tui.facts import at
from tests.tui.screens import NARROW, PROFILE, WIDE, app_on, context, live, page, shown, until
from tests.tui.states import finished_events, measuring_events

pytestmark = pytest.mark.anyio


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
