"""Numbers as the screen shows them: a missing one is a dash, a coming one an ellipsis, never 0."""

from deploytui import units
from deploytui.units import GIB

MISSING = "–"
PENDING = "…"
THIN = "\u2009"


def grouped(value: float) -> str:
    """A whole number with thin spaces between its thousands."""
    return f"{round(value):,}".replace(",", THIN)


def number(value: float | None) -> str:
    """A number with about three digits that say something."""
    if value is None:
        return MISSING
    if abs(value) >= 100:
        return grouped(value)
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def latency(seconds: float | None) -> str:
    """A latency in ms, from 10 s on in s."""
    if seconds is None:
        return MISSING
    if seconds >= 10:
        return f"{number(seconds)} s"
    return f"{number(seconds * 1e3)} ms"


def size(count: float | None) -> str:
    """A number of bytes in GiB, small ones in MiB."""
    return MISSING if count is None else units.size(count)


def gibs(count: float | None) -> str:
    """A number of bytes in GiB without the unit."""
    return MISSING if count is None else f"{count / GIB:.2f}" if count < 10 * GIB else f"{count / GIB:.1f}"


def share(value: float | None) -> str:
    """A share between 0 and 1, two digits."""
    return MISSING if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """A share between 0 and 1 as a whole percentage."""
    return MISSING if value is None else f"{value * 100:.0f} %"


def clock(seconds: float | None) -> str:
    """A duration as mm:ss, from an hour on h:mm:ss."""
    if seconds is None:
        return MISSING
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
