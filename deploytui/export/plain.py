"""Records as plain data that JSON and TOML can hold. Pure."""

import re
from typing import Any

import msgspec

from deploytui.profile.write import spelled_out

_MAYBE = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2[\x80\x81]|\xef\xbb\xbf")
"""How signs begin in UTF-8 that may have to be spelled out."""


def plain(value: Any) -> Any:
    """Structs, dicts and lists as plain data: what is no finite number is None, a broken character is `?`."""
    return _clean(msgspec.to_builtins(value, str_keys=True))


def harmless(content: bytes) -> bytes:
    """JSON or TOML that a terminal shows and never obeys; it means the same."""
    return spelled_out(content.decode()).encode() if _MAYBE.search(content) else content


def without_none(value: Any) -> Any:
    """Plain data for TOML, which has no null: an absent entry is left out; inside a list, where it would shift the
    others, it becomes the text `null`.
    """
    match value:
        case dict():
            return {key: without_none(part) for key, part in value.items() if part is not None}
        case list():
            return ["null" if part is None else without_none(part) for part in value]
        case _:
            return value


def _clean(value: Any) -> Any:
    match value:
        case float():
            return value if value - value == 0.0 else None
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case dict():
            return {_clean(str(key)): _clean(part) for key, part in value.items()}
        case list() | tuple():
            return [_clean(part) for part in value]
        case _:
            return value
