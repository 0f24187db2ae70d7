"""The help text: keys of the screen, then signs and words."""

from collections.abc import Iterable
from typing import Any

from textual.app import App
from textual.screen import Screen

from deploytui.definitions import TEXTS
from deploytui.tui.pieces import Line, Piece, line

SIGNS = (
    ("›", "selected"),
    ("•", "marked: r measures only marked ones, Latency shows them side by side"),
    ("★ ☆", "winner; recommended in a tie"),
    ("✔ ~ ✘ –", "accept, tune, reject, unsupported"),
    ("…", "still to come"),
    ("–", "not measured; never 0"),
    ("~182 ms", "of one repeat, more will follow"),
    ("SIMULATED", "numbers of the mock engine: no decision may rest on them"),
)
WORDS = ("ttft", "tpot", "icl", "e2e", "output_tok_s", "peak_gpu", "peak_host", "quality", "percentile")
COLUMN = 12


def help_lines(app: App[Any], screen: Screen[Any]) -> tuple[Line, ...]:
    """Keys with what they do, the signs of the grid, the definitions of its numbers."""
    keys: dict[str, tuple[list[str], str]] = {}
    for _, binding, _, tooltip in screen.active_bindings.values():
        if binding.id and tooltip:
            keys.setdefault(binding.id, ([], tooltip))[0].append(app.get_key_display(binding))
    return (
        line(Piece("Keys", "strong"), Piece("  ^p opens a palette with all of them", "dim")),
        *(_row(" ".join(sorted(names, key=len)), tooltip) for names, tooltip in keys.values()),
        (),
        line(Piece("Signs", "strong")),
        *(_row(sign, text) for sign, text in SIGNS),
        (),
        line(Piece("Numbers", "strong")),
        *_words(),
    )


def _row(left: str, text: str) -> Line:
    return line(Piece(f"{left:<{COLUMN}}", "mark"), text)


def _words() -> Iterable[Line]:
    for word in WORDS:
        yield line(TEXTS[word])
