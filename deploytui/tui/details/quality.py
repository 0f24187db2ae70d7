"""The Quality tab: each task with its score, n and interval."""

from collections.abc import Iterable

from deploytui.record.facts import Share
from deploytui.record.measured import Quality, TaskScore
from deploytui.record.state import CandidateState
from deploytui.tui.figures import grouped, share
from deploytui.tui.pieces import Line, Piece, line
from deploytui.tui.plain import cut, visible

TASK = 24


def quality_lines(candidate: CandidateState) -> tuple[Line, ...]:
    """A row a task and one of all together."""
    tasks = [record.score for record in candidate.tasks]
    if candidate.quality is None and not tasks:
        return (line(Piece(visible(candidate.name), "strong"), Piece("  no quality task was scored", "dim")),)
    return (
        line(Piece(visible(candidate.name), "strong")),
        line(Piece(f"{'task':<{TASK}}{'n':>6}{'score':>8}   95 % interval   answered  format", "dim")),
        *map(_task, candidate.quality.tasks if candidate.quality and candidate.quality.tasks else tasks),
        *(_total(candidate.quality) if candidate.quality else ()),
    )


def _task(score: TaskScore) -> Line:
    odd = Piece(f"  {score.degenerate} degenerate", "warn") if score.degenerate else ""
    return line(*_shares(visible(score.task), score.score, score.answered, score.format_pass), odd)


def _total(quality: Quality) -> Iterable[Line]:
    yield line(*_shares("all", quality.score, quality.answered, quality.format_pass))
    yield line(Piece("not answered (error, truncated, reasoning only) is not the same as wrong", "dim"))


def _shares(name: str, score: Share, answered: Share, form: Share) -> Line:
    return line(
        f"{cut(name, TASK - 1):<{TASK}}",
        f"{grouped(score.n):>6}",
        Piece(f"{share(score.value):>8}", "strong"),
        f"   {interval(score):<16}",
        f"{share(answered.value):>8}",
        f"{share(form.value):>8}",
    )


def interval(value: Share) -> str:
    """`0.80 … 0.91`, a dash without one."""
    return f"{share(value.low)} … {share(value.high)}" if value.low is not None else "–"
