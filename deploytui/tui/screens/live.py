"""The session as it runs, or as it was: grid, details of the selected candidate, decision."""

from typing import Any

from msgspec.structs import replace
from textual import getters, on, work
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.events import Resize
from textual.reactive import var
from textual.widgets import Input

from deploytui.record.state import SessionState
from deploytui.tui.columns import titles
from deploytui.tui.details.decision import decision_title, panel_lines
from deploytui.tui.feed import Feed, follow
from deploytui.tui.headline import Standing, alert, header, node_lines, status_line
from deploytui.tui.messages import SessionOver, SnapshotReady
from deploytui.tui.progress import active, runner_ns
from deploytui.tui.rows import RowBook, view_of
from deploytui.tui.screens.bindings import LIVE_BINDINGS, LIVE_HINTS
from deploytui.tui.screens.steering import Steering
from deploytui.tui.screens.viewing import Viewing
from deploytui.tui.tabs import TABS, tab_lines
from deploytui.tui.widgets.grid import CandidateGrid
from deploytui.tui.widgets.keys import KeyBar
from deploytui.tui.widgets.log import EngineLog
from deploytui.tui.widgets.panel import LinePanel
from deploytui.tui.widgets.tabs import TabStrip

SMALLEST = (60, 15)
"""Below this many columns or lines the screen is one line."""
NARROW, LOW, FLAT = 110, 30, 20
GRID_EXTRA = 2
"""The grid's heading and the line above it."""


class LiveScreen(Steering, Viewing):
    """Shows the newest snapshot and hands each part on; owns no process."""

    CSS_PATH = "live.tcss"
    BINDINGS = LIVE_BINDINGS

    following: var[bool] = var(True, init=False)
    """Whether the selection goes with the candidate that is worked on."""

    strip = getters.query_one(TabStrip)
    log_view = getters.query_one(EngineLog)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.book = RowBook()
        self.ran_here = False
        """Whether the session was seen running, so that its exit status is ours to pass on."""

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield LinePanel(id="header", wrap=False)
        yield LinePanel(id="alert", grow=True)
        yield LinePanel(id="node", wrap=False, grow=True)
        yield LinePanel(id="small", wrap=False)
        yield CandidateGrid(id="grid")
        with Container(id="lower"):
            with Vertical(id="detail"):
                yield TabStrip(TABS, id="tabs")
                yield LinePanel(id="tab")
                yield EngineLog(id="log")
            with Vertical(id="decision-box"):
                yield LinePanel(id="decision")
        yield Input(placeholder="name, engine, artifact, phase or verdict", id="filter", compact=True)
        yield KeyBar(LIVE_HINTS)

    def on_mount(self) -> None:
        """Begin to follow the session, and to let the clock tick."""
        self.strip.open = self.tab
        self.grid.focus()
        self.standing = self.timed(self.given or Standing(SessionState(), "running"))
        self.set_interval(1.0, self.tick)
        if self.folder is not None and self.given is None:
            self.follow_journal(Feed(self.folder))

    @work(exclusive=True, group="feed")
    async def follow_journal(self, feed: Feed) -> None:
        """Tail the journal until the screen goes."""
        await follow(feed, lambda standing: self.post_message(SnapshotReady(standing)))

    def on_snapshot_ready(self, message: SnapshotReady) -> None:
        """Show a newer view."""
        self.standing = self.timed(message.standing)

    def timed(self, standing: Standing) -> Standing:
        """The standing with the runner's time of now; when nothing more will come its time stands still."""
        if standing.over:
            return replace(standing, now_ns=standing.state.at_ns)
        return replace(standing, now_ns=runner_ns(standing.state, self.context.wall()))

    def tick(self) -> None:
        """A second has passed: only what shows the time changes."""
        if self.standing is not None and not self.standing.over:
            self.standing = self.timed(self.standing)

    # What is shown

    def watch_standing(self, before: Standing | None, standing: Standing) -> None:
        """Hand every part its share of the newest view."""
        self.show_all()
        if before is None or _keys_change(before, standing):
            self.refresh_bindings()
        self.ran_here = self.ran_here or (standing.source == "running" and standing.state.started is not None)
        ended = standing.state.ended
        if ended is not None and self.ran_here and (before is None or before.state.ended is None):
            self.post_message(SessionOver(ended.exit_status, self.leaving))

    def show_all(self) -> None:
        """Draw what changed; the widgets see to it that nothing else is."""
        standing = self.standing
        if standing is None or not self.is_mounted:
            return
        width = max(self.size.width - 2, 0)
        warning = alert(standing)
        with self.app.batch_update():
            self.panel("header").show([header(standing, width)])
            self.panel("node").show(node_lines(standing, width))
            self.panel("small").show([status_line(standing)])
            self.panel("alert").set_class(bool(warning), "-on")
            self.panel("alert").show([warning] if warning else [])
            self.show_grid(standing)
            self.follow_active()
            self.show_detail()
            self.show_decision(standing)

    def show_grid(self, standing: Standing) -> None:
        """The rows that pass the filter."""
        rows, view = self.book.rows(standing, self.marked, self.needle), view_of(standing)
        if len(rows) != len(self.grid.rows):
            self.grid.styles.height = len(rows) + GRID_EXTRA
        self.grid.show(rows, titles(gpu=view.gpu, quantile=view.quantile))

    def show_detail(self, *, top: bool = False) -> None:
        """The open tab's view of the selected candidate."""
        if self.standing is None:
            return
        if self.tab == "Log":
            name = self.grid.selected
            self.log_view.open(self.folder.candidate_dir(name) if self.folder and name else None)
            return
        self.log_view.close()
        panel = self.panel("tab")
        panel.show(
            tab_lines(self.tab, self.standing, self.grid.selected, self.marked, (panel.room, panel.size.height)),
            top=top,
        )

    def show_decision(self, standing: Standing) -> None:
        """The decision so far, or the last word."""
        box, title = self.query_one("#decision-box"), decision_title(standing.state, over=standing.over)
        if box.border_title != title:
            box.border_title = Content(title).plain
        self.panel("decision").show(panel_lines(standing.state, over=standing.over))

    def panel(self, name: str) -> LinePanel:
        """One of the panels."""
        return self.query_one(f"#{name}", LinePanel)

    def on_resize(self, event: Resize) -> None:
        """Take the arrangement that fits the window."""
        width, height = event.size
        self.set_class(width < SMALLEST[0] or height < SMALLEST[1], "-small")
        self.set_class(width < NARROW, "-narrow")
        self.set_class(height < LOW, "-low")
        self.set_class(height < FLAT, "-flat")
        self.call_after_refresh(self.show_all)

    # What is chosen

    def follow_active(self) -> None:
        """Select what is worked on, and after the end what leads, as long as no user chose otherwise."""
        if not self.following or self.standing is None:
            return
        state = self.standing.state
        row = None if self.standing.over else active(state)
        leader = (
            (state.decision.winner or state.decision.recommended) if state.decision and self.standing.over else None
        )
        name = row.name if row else leader
        if name is not None:
            self.grid.select(name)

    def action_follow(self) -> None:
        """Let the selection go with the candidate that is worked on."""
        self.following = True
        self.follow_active()

    def watch_tab(self) -> None:
        """Open another tab."""
        self.strip.open = self.tab
        self.set_class(self.tab == "Log", "-log")
        self.set_class(self.tab == "Decision", "-whole")
        self.call_after_refresh(self.show_detail, top=True)

    def watch_zoomed(self) -> None:
        """Give the details the whole window, or take it back."""
        self.set_class(self.zoomed, "-zoom")
        self.call_after_refresh(self.show_all)

    def watch_needle(self) -> None:
        """Show only what matches."""
        self.show_all()

    @on(CandidateGrid.Selected)
    def show_selected(self, event: CandidateGrid.Selected) -> None:
        """The details follow the selection; once a user chose, the selection follows nobody."""
        self.following = self.following and not event.by_hand
        self.show_detail(top=True)
        self.refresh_bindings()

    @on(TabStrip.Chosen)
    def open_chosen(self, event: TabStrip.Chosen) -> None:
        """A tab was clicked."""
        self.tab = event.name

    @on(Input.Changed, "#filter")
    def filter_rows(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        self.needle = event.value

    @on(Input.Submitted, "#filter")
    def keep_filter(self) -> None:
        """Back to the rows, filtered."""
        self.grid.focus()
        self.query_one("#filter").set_class(bool(self.needle), "-on")


def _keys_change(before: Standing, now: Standing) -> bool:
    """Whether other keys work now."""
    return (before.source, bool(before.state.candidates)) != (now.source, bool(now.state.candidates))
