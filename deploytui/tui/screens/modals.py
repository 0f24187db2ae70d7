"""Dialogs: a question with keyed answers, a text to read, a path to give."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Resize
from textual.screen import ModalScreen
from textual.widgets import Input

from deploytui.errors import DeployError
from deploytui.tui.keybar import Hint, bar
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import visible
from deploytui.tui.widgets.panel import LinePanel


class Choice(NamedTuple):
    """An answer and the key that gives it."""

    key: str
    label: str
    answer: str


BACK = Choice("escape", "back", "")


class Ask(ModalScreen[str]):
    """A question; the answer is that of the chosen key, '' for going back. Enter only gives one that does no harm."""

    CSS_PATH = "modals.tcss"

    def __init__(self, title: str, lines: Sequence[Line], choices: Sequence[Choice], *, enter: str = "") -> None:
        super().__init__()
        self.heading, self.lines, self.enter = title, lines, enter
        self.choices = (*choices, BACK)

    def compose(self) -> ComposeResult:
        """The question and a line of keys."""
        with Vertical(classes="box") as box:
            box.border_title = Content(visible(self.heading))
            yield LinePanel(id="text", grow=True)
            yield LinePanel(id="keys", wrap=False, grow=True)

    def on_mount(self) -> None:
        """Show both."""
        self.call_after_refresh(self._show)

    def on_resize(self, _event: Resize) -> None:
        """Fit the hints to another width."""
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        names = {"escape": "esc"}
        hints = [Hint(names.get(choice.key, choice.key), choice.label, 0) for choice in self.choices]
        self.query_one("#text", LinePanel).show(self.lines)
        keys = self.query_one("#keys", LinePanel)
        keys.show([bar(hints, keys.size.width or 60)])

    def on_key(self, event: Key) -> None:
        """Answer with the key's choice."""
        event.stop()
        if event.key == "enter" and self.enter:
            self.dismiss(self.enter)
        elif event.key == "ctrl+c":
            self.dismiss("")
        else:
            for choice in self.choices:
                if choice.key in (event.character, event.key):
                    self.dismiss(choice.answer)
                    return


class Say(ModalScreen[None]):
    """A text to read; any of the usual keys closes it."""

    CSS_PATH = "modals.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,question_mark,i", "dismiss", "Close", id="say.close", tooltip="Close this"),
        Binding("up,k", "scroll(-1)", "Up", show=False, id="say.up", tooltip="Scroll up"),
        Binding("down,j", "scroll(1)", "Down", show=False, id="say.down", tooltip="Scroll down"),
        Binding("pageup", "scroll(-10)", "Page up", show=False, id="say.page_up", tooltip="Scroll a page up"),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False, id="say.page_down", tooltip="A page down"),
    ]

    def __init__(self, title: str, lines: Sequence[Line], *, error: bool = False) -> None:
        super().__init__(classes="-error" if error else None)
        self.heading, self.lines = title, lines

    def compose(self) -> ComposeResult:
        """The text in a box."""
        with Vertical(classes="box") as box:
            box.border_title = Content(visible(self.heading))
            box.border_subtitle = "esc close · ↑↓ scroll"
            yield LinePanel(id="text", grow=True)

    def on_mount(self) -> None:
        """Show the text once the width is known."""
        self.call_after_refresh(lambda: self.query_one("#text", LinePanel).show(self.lines))

    def action_scroll(self, count: int) -> None:
        """Scroll by `count` lines."""
        self.query_one("#text", LinePanel).scroll_relative(y=count, animate=False)


def error_dialog(error: DeployError) -> Say:
    """What is wrong, in whose words, and what to do."""
    return Say("That did not work", error_lines(error), error=True)


def error_lines(error: DeployError) -> list[Line]:
    """An error in lines; text of others stays as it is."""
    first, *more = error.what.splitlines() or [""]
    lines = [line(Piece("✘ ", "bad"), visible(first))]
    lines += [line("  ", visible(part)) for part in more]
    lines += [line("  ", Piece(visible(part), "dim")) for part in error.why.splitlines()]
    lines += [line("  → ", visible(error.fix))] if error.fix else []
    return lines


class PathPrompt(ModalScreen[Path | None]):
    """Asks where to write; a file that is there already is replaced only after a second enter."""

    CSS_PATH = "modals.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", id="path.back", tooltip="Write nothing"),
    ]

    def __init__(self, title: str, default: Path) -> None:
        super().__init__()
        self.heading, self.default = title, default
        self.warned: Path | None = None

    def compose(self) -> ComposeResult:
        """A field with a sensible path in it."""
        with Vertical(classes="box") as box:
            box.border_title = Content(visible(self.heading))
            box.border_subtitle = "enter write · esc back"
            yield Input(str(self.default), select_on_focus=False)
            yield LinePanel(id="text", grow=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give the path, unless something is there."""
        if not event.value.strip():
            return self._warn("Give a path, or press esc.")
        path = Path(event.value.strip()).expanduser()
        if path.is_dir():
            return self._warn(f"{path} is a folder; name a file in it.")
        if path.exists() and path != self.warned:
            self.warned = path
            return self._warn("This file exists. Press enter again to replace it.")
        self.dismiss(path)
        return None

    def _warn(self, text: str) -> None:
        self.query_one("#text", LinePanel).show([line(Piece("! ", "warn"), visible(text))])
