"""What the live screen knows; its actions are built on this."""

from pathlib import Path

from textual import getters
from textual.reactive import var
from textual.screen import Screen

from deploytui.record.state import CandidateState
from deploytui.session.folder import SessionFolder
from deploytui.tui.context import Context
from deploytui.tui.headline import Standing
from deploytui.tui.widgets.grid import CandidateGrid


class SessionScreen(Screen[None]):
    """One session: a folder that is followed, or a fixed standing, from a saved profile perhaps."""

    standing: var[Standing | None] = var(None, init=False)
    tab: var[str] = var("Live", init=False)
    needle: var[str] = var("", init=False)
    zoomed: var[bool] = var(False, init=False)

    grid = getters.query_one("#grid", CandidateGrid)

    def __init__(
        self,
        context: Context,
        folder: SessionFolder | None = None,
        *,
        standing: Standing | None = None,
        saved: Path | None = None,
    ) -> None:
        super().__init__()
        self.context, self.folder, self.saved, self.given = context, folder, saved, standing
        self.marked: tuple[str, ...] = ()
        self.leaving = False
        """Whether to leave when the session has ended."""

    @property
    def chosen(self) -> CandidateState | None:
        """The selected candidate; None when there is none."""
        rows = self.standing.state.candidates if self.standing else {}
        return rows.get(self.grid.selected or "") if self.is_mounted else None

    @property
    def steerable(self) -> bool:
        """Whether a runner of this session listens."""
        return self.folder is not None and self.standing is not None and self.standing.steerable

    @property
    def profile_path(self) -> Path | None:
        """The profile this session is a run of; None for a fixed standing."""
        return self.saved or (self.folder.profile if self.folder else None)

    def show_all(self) -> None:
        """Draw what changed."""
        raise NotImplementedError
