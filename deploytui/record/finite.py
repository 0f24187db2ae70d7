"""Numbers that JSON can't hold."""

from typing import Any


def refuse_non_finite(value: Any) -> None:
    """Raise ValueError at the first float that JSON can't hold: msgspec would write null and then refuse to read it."""
    match value:
        case float():
            if value - value != 0.0:
                raise ValueError(f"{value} can't be written to the journal")
        case dict():
            for part in value.values():
                refuse_non_finite(part)
        case list() | tuple():
            for part in value:
                refuse_non_finite(part)
