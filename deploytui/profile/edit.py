"""Changes inside a profile's text that leave its comments and its order alone."""

import re
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from deploytui.errors import ProfileError
from deploytui.profile.parse import parse_profile

STEP = re.compile(r"\.?([A-Za-z0-9_-]+)|\[([^\]]+)\]")


def edited(text: str, changes: Mapping[str, Any], where: str = "profile") -> str:
    """The text with each value set at its path, such as `candidates[vllm-fp8].settings.threads`; None takes a key out.

    ProfileError when a path leads nowhere, or when the text would be no valid profile any more.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    try:
        document = tomlkit.parse(text.removeprefix("\ufeff"))
    except TOMLKitError as error:
        parse_profile(text, where)
        raise ProfileError(f"{where} is not valid TOML.", why=str(error)) from error
    for path, value in changes.items():
        _change(document, path, value, where)
    result = mark + tomlkit.dumps(document)
    parse_profile(result, where)
    return result


def _change(document: tomlkit.TOMLDocument, path: str, value: Any, where: str) -> None:
    """Set or take out one value."""
    *above, last = _steps(path, where)
    table: Any = document
    for step in above:
        table = _below(table, step, path, where, create=value is not None)
    if value is not None:
        table[last] = value
    elif isinstance(table, dict):
        table.pop(last, None)


def _steps(path: str, where: str) -> list[str]:
    """The keys and list places of a path."""
    steps = [match[1] or match[2] for match in STEP.finditer(path)]
    if not steps or STEP.sub("", path):
        raise ProfileError(f"{where} has no place `{path}`.", fix="Write it as in candidates[name].settings.threads.")
    return steps


def _below(table: Any, step: str, path: str, where: str, *, create: bool) -> Any:
    """The table or list item one step further in; a missing table is made when something will be put in it."""
    if isinstance(table, list):
        named = [row for row in table if isinstance(row, dict) and row.get("name") == step]
        placed = [row for index, row in enumerate(table) if str(index) == step]
        if named or placed:
            return (named or placed)[0]
    elif isinstance(table, dict):
        if step not in table and not create:
            return {}
        if step not in table:
            table[step] = tomlkit.inline_table()
        return table[step]
    raise ProfileError(f"{where} has no `{path}`.", fix=f'There is no "{step}" in it.')
