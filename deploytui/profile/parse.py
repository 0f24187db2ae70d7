"""TOML text to a profile, or to one error that tells everything that is wrong with it."""

import re
import tomllib
from typing import Any

import msgspec
from msgspec import Struct

from deploytui.errors import ProfileError
from deploytui.profile.faults import Fault, schema_faults, shown
from deploytui.profile.rules import rule_faults
from deploytui.profile.schema import SCHEMA, Profile

MOST_SHOWN = 20
"""Further faults that are told; a wrong file may have thousands."""

TWICE = re.compile(
    r"Cannot (overwrite a value|declare \(.*\) twice|mutate immutable|redefine)|Duplicate", re.IGNORECASE
)


class Peek(Struct, frozen=True, kw_only=True):
    """What any profile tells about itself, also one that is too new to be run."""

    schema: int
    name: str | None
    results: tuple[dict[str, Any], ...]
    decision: dict[str, Any] | None
    """None when the session was not decided, or nothing was saved."""

    @property
    def newer(self) -> bool:
        """Whether this version does not know its keys."""
        return self.schema > SCHEMA

    @property
    def saved(self) -> bool:
        """Whether there are results inside."""
        return bool(self.results)


def parse_profile(text: str, where: str = "profile") -> Profile:
    """The profile in a TOML text; ProfileError names `where`, the key, and all other faults found with it."""
    data = _toml(text, where)
    schema = _schema_number(data, where)
    if schema > SCHEMA:
        raise ProfileError(
            f"{where} has schema {schema}, this version knows {SCHEMA}.",
            fix="Open it with a newer deploytui.",
        )
    _refuse(schema_faults(data, Profile), where)
    try:
        profile = msgspec.convert(data, Profile)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where} does not fit the schema.", why=str(error)) from error
    _refuse(rule_faults(profile), where)
    return profile


def peek(text: str, where: str = "profile") -> Peek:
    """Schema number, name and results of a profile of any schema; ProfileError when it is no TOML."""
    data = _toml(text, where)
    results, decision, name = data.get("results"), data.get("decision"), data.get("name")
    return Peek(
        schema=_schema_number(data, where),
        name=name if isinstance(name, str) else None,
        results=tuple(row for row in results if isinstance(row, dict)) if isinstance(results, list) else (),
        decision=decision if isinstance(decision, dict) else None,
    )


def _toml(text: str, where: str) -> dict[str, Any]:
    """The plain data of a TOML text; a byte order mark before it is no fault."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        fix = "Keep one of the two." if TWICE.search(str(error)) else "Correct the TOML there."
        what = "has a key or table twice" if TWICE.search(str(error)) else "is not valid TOML"
        raise ProfileError(f"{where} {what}: {_told(str(error), text)}.", fix=fix) from error
    except RecursionError as error:
        raise ProfileError(f"{where} is nested too deeply to be a profile.", fix="Is it the right file?") from error


def _told(message: str, text: str) -> str:
    """The parser's message with its place, line first; its "end of document" is the last line."""
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    if match is None:
        return message
    lines = text.split("\n")
    return f"line {match[2] or len(lines)}, column {match[3] or len(lines[-1]) + 1}: {match[1]}"


def _schema_number(data: dict[str, Any], where: str) -> int:
    """The schema a profile is written in; ProfileError when it is no number from 1 on."""
    schema = data.get("schema", SCHEMA)
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        _refuse((Fault("schema", f"can't be {shown(schema)}", f"Write schema = {SCHEMA}."),), where)
    return int(schema)


def _refuse(faults: tuple[Fault, ...], where: str) -> None:
    """Raise the first fault with the others below it; nothing when there is none."""
    if not faults:
        return
    first, *others = faults
    rest = [f"Also: {fault.sentence} {fault.fix}".rstrip() for fault in others[:MOST_SHOWN]]
    if len(others) > MOST_SHOWN:
        rest.append(f"And {len(others) - MOST_SHOWN} more.")
    if rest:  # each with its remedy, or the first one's would stand below the others
        raise ProfileError(f"{where}: {first.sentence} {first.fix}".rstrip(), why="\n".join(rest))
    raise ProfileError(f"{where}: {first.sentence}", fix=first.fix)
