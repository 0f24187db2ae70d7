"""The line of key hints at the bottom, made from the bindings that work now."""

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from deploytui.tui.keybar import Hint, bar
from deploytui.tui.widgets.panel import LinePanel


class KeyBar(Widget):
    """Follows the bindings of its screen; honours a keymap."""

    DEFAULT_CSS = """
    KeyBar { dock: bottom; height: 1; }
    KeyBar LinePanel { height: 1; }
    """

    def __init__(self, ranks: dict[str, int]) -> None:
        super().__init__()
        self.ranks = ranks
        """Binding id → rank; a binding that is not here has no hint."""

    def compose(self) -> ComposeResult:
        """One line."""
        yield LinePanel(wrap=False)

    def on_mount(self) -> None:
        """Follow the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self._refresh)
        self.call_after_refresh(self._refresh, self.screen)

    def on_resize(self) -> None:
        """Choose anew for another width."""
        self._refresh(self.screen)

    def _refresh(self, screen: Screen[object]) -> None:
        self.query_one(LinePanel).show([bar(self.hints(screen), self.size.width)])

    def hints(self, screen: Screen[object]) -> list[Hint]:
        """The enabled bindings that have a rank, in the order of the screen's bindings, a key each."""
        keys: dict[str, list[str]] = {}
        labels = {"app.palette": ""}
        for _, binding, enabled, _ in screen.active_bindings.values():
            if enabled and binding.id in self.ranks:
                keys.setdefault(binding.id, []).append(self.app.get_key_display(binding))
                labels.setdefault(binding.id, binding.description.lower())
        return [Hint(min(keys[name], key=len), labels[name], rank) for name, rank in self.ranks.items() if name in keys]
