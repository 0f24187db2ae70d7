"""What all events of the journal share."""

from msgspec import Struct

Evidence = dict[str, str | int | float | bool | None]


class Event(Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """What all events share."""

    at_ns: int
