"""The list of sessions as text."""

from collections.abc import Sequence
from datetime import datetime

from deploytui.session.listing import SessionRow

HEAD = ("session", "started", "state", "decision", "winner")


def sessions_text(rows: Sequence[SessionRow]) -> str:
    """One line a session under a headline; a word on how to begin when there is none."""
    if not rows:
        return "There is no session yet. Start one with: deploytui demo"
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
    )


def _cells(row: SessionRow) -> tuple[str, ...]:
    started = "–" if row.started_wall_s is None else f"{datetime.fromtimestamp(row.started_wall_s):%Y-%m-%d %H:%M}"
    decision = (row.decision or "–") + ("" if row.final or row.decision is None else " so far")
    stamp = " SIMULATED" if row.simulated else ""
    return row.id, started, row.state, decision + stamp, row.winner or "–"
