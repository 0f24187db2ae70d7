"""A profile as TOML text, in the order a person would write it."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import tomli_w
from msgspec import NODEFAULT, UNSET, Struct

from deploytui.profile.schema import Profile

_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""What a terminal or an editor obeys in place of showing it, and writers of TOML and JSON leave as it is."""

RECORDED = ("session", "environment", "decision")
"""Tables of a saved session; they hold whatever their writer knew."""


def profile_toml(profile: Profile) -> str:
    """The profile as TOML; parsing it gives the same profile. ValueError for NaN, infinity or None in a list."""
    asked = {"schema": profile.schema, "name": profile.name, **_asked(profile)}
    tables = [key for key in ("workload", "quality", "gates", "engine_gate") if key in asked]
    root = {key: value for key, value in asked.items() if key not in (*tables, *RECORDED, "candidates", "results")}
    parts = ["".join(_pair(key, value) for key, value in root.items())]
    parts += [f"[{key}]\n" + _pairs(asked[key]) for key in tables]
    parts += ["[[candidates]]\n" + _pairs(candidate) for candidate in asked["candidates"]]
    parts += [_free(key, asked[key]) for key in RECORDED if key in asked]
    parts += [_free("results", result, listed=True) for result in asked.get("results", [])]
    return spelled_out("\n".join(parts))


def spelled_out(text: str) -> str:
    r"""TOML or JSON whose control and direction signs beyond ASCII are written `\uNNNN`, which means the same."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _asked(struct: Struct) -> dict[str, Any]:
    """A struct as plain data, without what is absent or default; its tag first."""
    config = struct.__struct_config__
    data: dict[str, Any] = {config.tag_field: config.tag} if config.tag_field else {}
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if value is None or value is UNSET or value == _default(field):
            continue
        data[field.encode_name] = _plain(value, field.encode_name)
    return data


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """The default of a field; NODEFAULT, which equals nothing else, when it must be given."""
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _plain(value: Any, path: str) -> Any:
    """A value as TOML can hold it: an absent entry of a table is left out, in a list it would shift the others."""
    match value:
        case Struct():
            return _asked(value)
        case Mapping():
            return {key: _plain(part, f"{path}.{key}") for key, part in value.items() if part is not None}
        case list() | tuple():
            return [_plain(part, f"{path}[{index}]") for index, part in enumerate(value)]
        case None:
            raise ValueError(f"{path} is None, which a TOML list can't hold")
        case float() if value - value != 0.0:
            raise ValueError(f"{path} is {value}, which a profile can't hold")
        case _:
            return value


def _pairs(table: Mapping[str, Any]) -> str:
    """The lines of a table."""
    return "".join(_pair(key, value) for key, value in table.items())


def _pair(key: str, value: Any) -> str:
    """One line `key = value`; tables stand inside it."""
    return f"{_key(key)} = {_inline(value)}\n"


def _key(key: str) -> str:
    """The key, quoted where it must be."""
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")


def _inline(value: Any) -> str:
    """A value on one line."""
    match value:
        case dict() if not value:
            return "{}"
        case dict():
            return "{ " + ", ".join(f"{_key(key)} = {_inline(part)}" for key, part in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case _:
            return tomli_w.dumps({"v": value}).removeprefix("v = ").removesuffix("\n")


def _free(key: str, table: Mapping[str, Any], *, listed: bool = False) -> str:
    """A table of free shape with its header, and its sub-tables below."""
    header = f"[{key}]\n"
    body = tomli_w.dumps({key: table}).removeprefix(header)
    return (f"[[{key}]]\n" if listed else header) + body
