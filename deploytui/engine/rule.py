"""What engines write when they fail, as data: a line that decides, its kind, and what to say of it."""

from msgspec import Struct

from deploytui.record.words import FailureKind


class Rule(Struct, frozen=True, kw_only=True):
    """A line that holds `mark` and matches `pattern`; its groups fill the texts.

    With `after` it counts only once a line with that was seen, with `until` no more once a line with that came behind.
    """

    mark: str
    kind: FailureKind
    what: str
    fix: str
    pattern: str = ""
    after: str = ""
    until: str = ""


def rules(
    kind: FailureKind, what: str, fix: str, *marks: str, pattern: str = "", after: str = "", until: str = ""
) -> tuple[Rule, ...]:
    """One rule for each mark."""
    return tuple(
        Rule(mark=mark, kind=kind, what=what, fix=fix, pattern=pattern, after=after, until=until) for mark in marks
    )
