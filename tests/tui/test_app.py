"""The application as a whole: palette, keymaps, colours, and how it ends."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.app import App

from deploytui.record.events import encode
from deploytui.session.folder import SessionFolder
from deploytui.tui.screens.modals import Ask
from deploytui.tui.theme import first_theme
from tests.tui.screens import NARROW, WIDE, app_on, hints, live, page, until
from tests.tui.states import finished_events, measuring_events

PROGRAM = """
import os
import signal
import sys
if os.environ.get("SETSID"):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.fork() and os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
    os.setsid()
from pathlib import Path
from deploytui.session.folder import SessionFolder
from deploytui.tui.app import run_screen
sys.exit(run_screen(SessionFolder(Path(sys.argv[1])), state=Path(sys.argv[1]).parent, start=lambda *_: None))
"""


@pytest.mark.anyio
async def test_every_action_is_in_the_palette() -> None:
    screen = live(measuring_events())
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        titles = {command.title for command in app.get_system_commands(screen)}
        actions = {row.binding.description for row in screen.active_bindings.values() if row.binding.tooltip}
        assert actions - {"Palette"} <= titles
        assert {"Skip", "Cancel", "Detach", "Save", "Export", "Explain", "Help", "Latency"} <= titles


@pytest.mark.anyio
async def test_every_key_has_an_id_and_says_what_it_does() -> None:
    screen = live(measuring_events())
    app = app_on(screen)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        ours = [row.binding for row in screen.active_bindings.values() if row.node in (screen, screen.grid)]
        nameless = [binding.key for binding in ours if not binding.id or not binding.tooltip]
        assert [key for key in nameless if not key.startswith(("ctrl+c", "super+c", "ctrl+page"))] == []


@pytest.mark.anyio
async def test_a_keymap_moves_keys_and_their_hints() -> None:
    screen = live(measuring_events())
    app = app_on(screen)
    async with app.run_test(size=WIDE) as pilot:
        app.set_keymap({"live.cancel": "f8"})
        await pilot.pause()
        assert "f8 cancel" in hints(screen)
        await pilot.press("X")
        assert app.screen is screen
        await pilot.press("f8")
        await until(lambda: isinstance(app.screen, Ask))


@pytest.mark.anyio
async def test_without_colours_every_state_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_on(live(finished_events(), "ended"))
    assert app.no_color
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        text = "\n".join(page(app))
    for part in ("› ★ vllm-bf16", "✔ accept", "~ tune: noisy", "– unsupported", "✘ load_failed: oom", "[1 Live]"):
        assert part in text


@pytest.mark.parametrize(
    ("system", "theme"),
    [("truecolor", "deploytui-dark"), ("256", "deploytui-dark"), ("standard", "ansi-dark"), (None, "ansi-dark")],
)
def test_a_terminal_of_sixteen_colours_keeps_its_own(system: str | None, theme: str) -> None:
    assert first_theme(system) == theme


@pytest.mark.anyio
async def test_the_sixteen_colour_theme_paints_no_background() -> None:
    app: App[None] = app_on(live(finished_events(), "ended"), "ansi-dark")
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        plain = [s for strip in strips for s in strip if s.style is None or not s.style.reverse]
        assert {s.style.bgcolor.name for s in plain if s.style and s.style.bgcolor} <= {"default"}


@pytest.fixture
def session(tmp_path: Path) -> SessionFolder:
    folder = SessionFolder(tmp_path / "session")
    folder.path.mkdir()
    folder.journal.write_bytes(b"".join(map(encode, finished_events())))
    return folder


class Terminal:
    """A process of its own on a pseudo-terminal of 100 by 30."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, {**os.environ, **env})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.output = b""
        self.status: int | None = None

    def read_until(self, word: bytes, limit_s: float = 20.0) -> None:
        """Read on until a word was seen."""
        end = time.monotonic() + limit_s
        while word not in self.output:
            assert time.monotonic() < end, self.output[-2000:]
            self.read()

    def read(self) -> bool:
        """Read what there is; False at the end."""
        if select.select([self.fd], [], [], 0.1)[0]:
            try:
                block = os.read(self.fd, 65536)
            except OSError:
                return False
            self.output += block
            return bool(block)
        return True

    def wait(self, limit_s: float = 10.0) -> int:
        """The exit status."""
        end = time.monotonic() + limit_s
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < end, "it lives on"
            if self.fd >= 0:
                self.read()
            else:
                select.select([], [], [], 0.02)
        return self.status

    def hang_up(self) -> None:
        """The line drops."""
        os.close(self.fd)
        self.fd = -1

    def close(self) -> None:
        """Leave nothing behind."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.fd >= 0:
            os.close(self.fd)


@contextlib.contextmanager
def terminal(folder: SessionFolder, **env: str) -> Iterator[Terminal]:
    base = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TEXTUAL_ANIMATIONS": "none"}
    screen = Terminal([sys.executable, "-c", PROGRAM, str(folder.path)], {**base, **env})
    try:
        screen.read_until("★".encode())
        yield screen
    finally:
        screen.close()


def put_back(output: bytes) -> bool:
    """Whether every mode that was set is unset again: mouse, paste, alternate screen."""
    return all(f"\x1b[?{mode}l".encode() in output for mode in (1000, 1003, 1006, 1049, 2004)) and b"?25h" in output


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_screen_and_puts_the_terminal_back(session: SessionFolder, sign: signal.Signals) -> None:
    with terminal(session) as screen:
        os.kill(screen.pid, sign)
        assert screen.wait() == 128 + sign
        assert put_back(screen.output)


def test_a_dropped_line_ends_the_screen(session: SessionFolder) -> None:
    with terminal(session) as screen:
        screen.hang_up()
        assert screen.wait() == 128 + signal.SIGHUP


def test_a_terminal_that_goes_without_a_signal_ends_the_screen(session: SessionFolder) -> None:
    with terminal(session, SETSID="yes") as screen:
        screen.hang_up()
        assert screen.wait() == 128 + signal.SIGHUP


def test_a_locale_without_utf8_still_gets_the_screen(session: SessionFolder) -> None:
    odd = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with terminal(session, **odd) as screen:
        os.write(screen.fd, b"q")
        assert screen.wait() == 0
        assert put_back(screen.output)


@pytest.mark.parametrize("kind", ["screen", "linux"])
def test_old_terminals_get_the_screen_in_their_own_colours(session: SessionFolder, kind: str) -> None:
    with terminal(session, TERM=kind, COLORTERM="") as screen:
        os.write(screen.fd, b"q")
        assert screen.wait() == 0
        assert b"38;2;" not in screen.output
