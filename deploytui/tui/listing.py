"""The rows of the start screen: sessions and profiles as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from deploytui.tui.context import Context
from deploytui.tui.plain import cut, visible
from deploytui.tui.words import DECISION_SIGNS

if TYPE_CHECKING:
    from deploytui.profile.files import ListedProfile
    from deploytui.session.listing import SessionRow

SESSION_HEADS = ("session", "started", "state", "n", "decision")
PROFILE_HEADS = ("profile", "file", "")
NAME = 28


class Listed(NamedTuple):
    """A row with its key and what a filter looks at."""

    key: str
    cells: tuple[Text, ...]

    @property
    def words(self) -> str:
        """All its text."""
        return " ".join(part.plain for part in self.cells).casefold()


def read_lists(context: Context) -> tuple[list[Listed], list[Listed]]:
    """Sessions and profiles; blocks. What reads them is imported here, where the first frame does not wait for it."""
    from deploytui.profile.files import list_profiles
    from deploytui.session.listing import list_sessions

    return session_rows(list_sessions(context.state)), profile_rows(list_profiles(context.profiles))


def session_rows(rows: Sequence[SessionRow]) -> list[Listed]:
    """A row a session, newest first as given."""
    return [Listed(str(row.path), tuple(map(Text, _session(row)))) for row in rows]


def _session(row: SessionRow) -> tuple[str, ...]:
    count = "" if row.candidates is None else str(row.candidates)
    name = cut(visible(row.name), NAME)
    return name, _started(row.started_wall_s), row.state, count, decision_text(row)


def decision_text(row: SessionRow) -> str:
    """The decision with its winner; `so far` until it is final."""
    stamp = "SIMULATED " if row.simulated else ""
    if row.decision is None:
        return f"{stamp}–"
    winner = f" {cut(visible(row.winner), NAME)}" if row.winner else ""
    so_far = " so far" if row.final is False else ""
    return f"{stamp}{DECISION_SIGNS[row.decision]} {row.decision}{winner}{so_far}"


def _started(wall_s: float | None) -> str:
    return "–" if wall_s is None else f"{datetime.fromtimestamp(wall_s):%Y-%m-%d %H:%M}"


def profile_rows(profiles: Sequence[ListedProfile]) -> list[Listed]:
    """A row a profile; a broken one says why."""
    return [Listed(str(profile.path), tuple(map(Text, _profile(profile)))) for profile in profiles]


def _profile(profile: ListedProfile) -> tuple[str, ...]:
    name = cut(visible(profile.name or "–"), NAME)
    fault = visible((profile.fault or "").partition("\n")[0])
    kind = f"✘ {cut(fault, 60)}" if fault else "saved results" if profile.saved else ""
    return name, visible(profile.path.name), kind
