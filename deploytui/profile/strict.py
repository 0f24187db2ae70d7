"""What all tables of a profile share: numbers with their bounds, and that an unknown key is an error."""

from typing import Annotated

from msgspec import Meta, Struct

Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Rate = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Strict(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table whose unknown keys are errors."""
