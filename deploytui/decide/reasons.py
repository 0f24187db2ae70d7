"""Making reasons: figures, text, and what to change next, which is the table's remedy unless more is known."""

from math import isfinite

from deploytui.decide.effects import EFFECTS
from deploytui.decide.figures import Figure
from deploytui.record.verdict import Reason


def plain(code: str, text: str = "", *, metric: str | None = None, proof: str | None = None, fix: str = "") -> Reason:
    """A reason without figures."""
    row = EFFECTS[code]
    return Reason(code=code, metric=metric, text=text or row.meaning, proof=proof, next=fix or row.remedy)


def with_figure(code: str, figure: Figure, text: str, *, fix: str = "") -> Reason:
    """A reason that rests on a figure alone."""
    return _figured(code, figure, text, fix=fix, limit=None, margin=None, passed=False)


def against_limit(
    code: str, figure: Figure, limit: float, margin: float | None, text: str, *, fix: str = "", passed: bool = False
) -> Reason:
    """A reason that rests on a figure and its limit; a positive margin is room, a negative one the excess."""
    return _figured(code, figure, text, fix=fix, limit=limit, margin=margin, passed=passed)


def _figured(
    code: str, figure: Figure, text: str, *, fix: str, limit: float | None, margin: float | None, passed: bool
) -> Reason:
    low, high = figure.interval or (None, None)
    return Reason(
        code=code,
        metric=figure.metric,
        value=figure.value,
        n=figure.n,
        low=low,
        high=high if high is not None and isfinite(high) else None,
        limit=limit,
        margin=margin,
        proof=figure.proof or None,
        text=text,
        next="" if passed else fix or EFFECTS[code].remedy,
        passed=passed,
    )
