"""What a set-up shows: lines, or one living line on a terminal; the list of recipes."""

import shutil
import sys
import textwrap
import time
from collections.abc import Iterator

from deploytui import units
from deploytui.check.environments import EngineEnvironment, read_environment
from deploytui.check.text import plain, size, table
from deploytui.engine.environments import engines_dir
from deploytui.run.setup_recipes import RECIPES, Recipe
from deploytui.run.setup_step import Moment
from deploytui.session.speech import fitting, shown, tell

EVERY_S = 10.0
"""How often a step that goes on is told without a terminal [s]."""
COLUMNS = 79


def moment_text(moment: Moment, columns: int | None = None) -> str:
    """Step, package, time and size so far; in so many columns the package is what is cut."""
    place, rest = f"[{moment.step}/{moment.steps}] {moment.title}", _so_far(moment)
    package = moment.package if columns is None else moment.package[: max(columns - len(place) - len(rest) - 2, 0)]
    return f"{place}: {package}{rest}" if package else f"{place}{rest}"


def _so_far(moment: Moment) -> str:
    return f", {moment.elapsed_s:.0f} s, {size(moment.bytes)} so far"


class Teller:
    """Tells moments on standard error: each on the same line of a terminal, else a line a step and now and then one."""

    def __init__(self) -> None:
        self.alive = sys.stderr is not None and sys.stderr.isatty()
        self.step, self.told_at, self.shown = 0, 0.0, 0

    def __call__(self, moment: Moment) -> None:
        """Tell it, if it is time to."""
        if self.alive:
            self._live(moment)
        elif moment.step != self.step or time.monotonic() - self.told_at >= EVERY_S:
            tell(moment_text(moment))
            self.told_at = time.monotonic()
        self.step = moment.step

    def _live(self, moment: Moment) -> None:
        columns = shutil.get_terminal_size((COLUMNS + 1, 24)).columns - 1
        line = fitting(shown(moment_text(moment, columns)), sys.stderr.encoding)[:columns]
        sys.stderr.write(f"\r{line:<{min(self.shown, columns)}}")
        sys.stderr.flush()
        self.shown = len(line)

    def end(self) -> None:
        """Leave the living line as it stands."""
        if self.shown:
            sys.stderr.write("\n")
            self.shown = 0


def begin_text(recipe: Recipe, python: str) -> str:
    """What is going to happen."""
    return "\n  ".join(
        (
            f"Setting up {recipe.name}: {recipe.title}",
            f"in {engines_dir() / recipe.name}",
            f"with {python}",
            _costs(recipe),
            *([recipe.note] if recipe.note else []),
        )
    )


def _costs(recipe: Recipe) -> str:
    return f"about {units.size(recipe.download_bytes)} to fetch, {units.size(recipe.installed_bytes)} on disk"


def made_text(made: EngineEnvironment) -> str:
    """What came of it."""
    return f"{made.name}: {versions_text(made)}, made in {made.seconds:.0f} s, {size(made.bytes)}"


def versions_text(made: EngineEnvironment) -> str:
    """Main packages and their versions."""
    known = [f"{name} {version}" for name, version in made.versions.items() if version]
    return ", ".join((*known, f"Python {made.python}"))


def list_text() -> str:
    """The recipes, and what is there of them."""
    return "\n".join((f"Engine environments in {engines_dir()}:", *_wrapped(table(list(_rows())))))


def _wrapped(lines: list[str]) -> Iterator[str]:
    """On a terminal what is too long goes on below its own column."""
    if sys.stdout is None or not sys.stdout.isatty():
        yield from lines
        return
    columns = shutil.get_terminal_size((COLUMNS + 1, 24)).columns
    indent = " " * (max(map(len, RECIPES)) + len("  ready  "))
    for line in lines:
        yield textwrap.fill(line, columns, subsequent_indent=indent, drop_whitespace=True) if line else line


def _rows() -> Iterator[tuple[str, ...]]:
    for recipe in RECIPES.values():
        made = read_environment(engines_dir() / recipe.name)
        yield recipe.name, "ready" if made else "-", plain(_words(recipe, made))


def _words(recipe: Recipe, made: EngineEnvironment | None) -> str:
    if made is not None:
        return f"{versions_text(made)}, {size(made.bytes)}, of {made.date[:10]}"
    needs = ", for an NVIDIA GPU" if recipe.gpu else ", needs a C++ compiler" if recipe.programs else ""
    return f"{recipe.title}: {_costs(recipe)}{needs}"
