"""The tabs of the live screen and what each says."""

from collections.abc import Sequence

from deploytui.record.state import CandidateState, SessionState
from deploytui.tui.details.config import config_lines
from deploytui.tui.details.curve import curve_lines
from deploytui.tui.details.decision import whole_lines
from deploytui.tui.details.latency import latency_lines
from deploytui.tui.details.live import live_lines
from deploytui.tui.details.quality import quality_lines
from deploytui.tui.headline import Standing
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.rows import view_of

TABS = ("Live", "Latency", "Log", "Config", "Quality", "Decision")


def tab_lines(
    tab: str, standing: Standing, chosen: str | None, marked: Sequence[str], room: tuple[int, int]
) -> Sequence[Line]:
    """The lines of every tab but the log, which is a file; `room` is the width and height there is."""
    state = standing.state
    if tab == "Decision":
        return whole_lines(state, over=standing.over)
    candidate = state.candidates.get(chosen or "")
    if candidate is None:
        return (line(Piece("no candidate", "dim")),)
    match tab:
        case "Latency":
            rows = [candidate, *(row for row in _marked(state, marked) if row.name != candidate.name)]
            curves = [part for row in rows if (part := curve_lines(row, state.points, room[0]))]
            return (*(part for lines in curves for part in (*lines, ())), *latency_lines(candidate, rows))
        case "Config":
            return config_lines(candidate, state.started.baseline if state.started else None)
        case "Quality":
            return quality_lines(candidate)
        case _:
            return live_lines(candidate, view_of(standing), *room)


def _marked(state: SessionState, names: Sequence[str]) -> Sequence[CandidateState]:
    return [row for name, row in state.candidates.items() if name in names]
