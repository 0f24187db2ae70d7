"""Prefixes live at the edge: seconds, bytes and tokens inside, ms and GiB outside."""

NS = 1e-9
"""Seconds in a nanosecond."""

GIB = 1 << 30
"""Bytes in a GiB."""


MIB = 1 << 20
"""Bytes in a MiB."""


def size(count: float, digits: int = 0) -> str:
    """A number of bytes in words: GiB, small ones in MiB with so many digits."""
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / MIB:.{digits}f} MiB"


def ms(seconds: float | None) -> float | None:
    """Milliseconds [ms]; None stays None."""
    return None if seconds is None else seconds * 1e3


def gib(count: float | None) -> float | None:
    """GiB of a number of bytes; None stays None."""
    return None if count is None else count / GIB
