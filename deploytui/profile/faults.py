"""Every place where plain data does not fit the schema, with a path a reader finds in their file."""

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from deploytui.profile.load_schema import Closed
from deploytui.profile.nearest import did_you_mean
from deploytui.profile.schema import Candidate, Limits, Profile, Settings

OTHER_NAMES = {
    "gpu_memory_utilization": "memory_share",
    "mem_fraction_static": "memory_share",
    "free_gpu_memory_fraction": "memory_share",
    "n_ctx": "max_model_len",
    "ctx_size": "max_model_len",
    "context_length": "max_model_len",
    "tp_size": "tensor_parallel",
    "max_batch_size": "max_num_seqs",
    "max_running_requests": "max_num_seqs",
}
"""What engines call a normalised setting, where spelling alone does not lead to it."""

WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
MESSAGE = re.compile(r"Expected `(?P<kinds>[^`]+)`(?P<limit>[^,]*?)(?:, got `[^`]+`)?(?: - at `\$(?P<below>.*)`)?$")


class Fault(Struct, frozen=True):
    """One thing that is wrong: where, what, and one thing to do."""

    path: str
    text: str
    fix: str = ""

    @property
    def sentence(self) -> str:
        """Path and text as one sentence."""
        return f"`{self.path}` {self.text}." if self.path else f"{self.text}."


def schema_faults(data: Mapping[str, Any], schema: type[Struct]) -> tuple[Fault, ...]:
    """All faults of a table, in its order; unknown keys first, since they often explain the rest."""
    found = [*_table(data, schema, ""), *_not_finite(data, "")]
    return tuple(sorted(found, key=lambda fault: "known key" not in fault.text))


def place(path: str, index: int, part: object) -> str:
    """The path of a list's item: by its name where it has one."""
    name = part.get("name") if isinstance(part, dict) else None
    return f"{path}[{name if isinstance(name, str) and name else index}]"


def shown(value: object) -> str:
    """A value as a reader would recognise it, cut when it is long."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'the string "{value[:60]}{"…" if len(value) > 60 else ""}"'
        case int() | float():
            return f"{value}"[:60] if not isinstance(value, int) or abs(value) < 10**60 else "a huge integer"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return f"a {type(value).__name__}"


def _table(data: Mapping[str, Any], schema: type[Struct], path: str) -> Iterator[Fault]:
    """Faults of one table against one struct."""
    known = {field.encode_name: field for field in msgspec.structs.fields(schema)}
    tag = schema.__struct_config__.tag_field
    for key, value in data.items():
        below = f"{path}.{key}" if path else key
        if key in known:
            yield from _value(value, known[key].type, below)
        elif key != tag:
            yield Fault(below, "is not a known key", _meant(key, schema))
    for key, field in known.items():
        if field.required and key not in data:
            yield Fault(f"{path}.{key}" if path else key, "is missing", _missing_fix(key, path))


def _value(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    """Faults of one value against a type, as deep as they go."""
    tables = [part for part in _parts(kind) if isinstance(part, type) and issubclass(part, Struct)]
    lists = [get_args(part)[0] for part in _parts(kind) if get_origin(part) is tuple]
    maps = [get_args(part)[1] for part in _parts(kind) if get_origin(part) is dict]
    if tables and isinstance(value, dict):
        chosen, fault = _choice(value, tables, path)
        yield from [fault] if fault else []
        yield from _table(value, chosen, path) if chosen else []
    elif lists and isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from _value(part, lists[0], place(path, index, part))
    elif maps and isinstance(value, dict):
        for key, part in value.items():
            yield from _value(part, maps[0], f"{path}.{key}")
    else:
        yield from _leaf(value, kind, path)


def _choice(value: dict[str, Any], tables: list[type[Struct]], path: str) -> tuple[type[Struct] | None, Fault | None]:
    """The struct that a table means by its tag, or the fault in the tag."""
    tag = tables[0].__struct_config__.tag_field
    if tag is None:
        return tables[0], None
    by_tag = {str(table.__struct_config__.tag): table for table in tables}
    said = value.get(tag)
    if tag not in value:
        return None, Fault(f"{path}.{tag}", "is missing", f"Add {tag} = one of {', '.join(by_tag)}.")
    if not isinstance(said, str) or said not in by_tag:
        return None, Fault(f"{path}.{tag}", f"can't be {shown(said)}", did_you_mean(str(said), by_tag))
    return by_tag[said], None


def _leaf(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    """The fault of a value that has no known parts of its own."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        yield _worded(str(error), value, kind, path)


def _worded(message: str, value: Any, kind: Any, path: str) -> Fault:
    """The library's message in a reader's words."""
    choices = [str(word) for part in _parts(kind) if get_origin(part) is Literal for word in get_args(part)]
    if choices and isinstance(value, str):
        return Fault(path, f"can't be {shown(value)}", f"Choose one of {', '.join(choices)}.")
    if value == []:
        return Fault(path, "is empty", "Add at least one.")
    match = MESSAGE.match(message)
    if match is None:
        return Fault(path, f"does not fit: {message}")
    kinds = [word for word in match["kinds"].split(" | ") if word != "null"]
    expected = " or ".join(WORDS.get(word, word) for word in kinds)
    got = f", got {shown(value)}" if ".env." not in path else ""
    return Fault(path, f"must be {expected}{match['limit']}{got}", _type_fix(value, kind, kinds))


def _type_fix(value: Any, kind: Any, kinds: list[str]) -> str:
    """One thing to write instead, where it is plain."""
    if Limits in _parts(kind):
        return f"Name the statistic: {{ p95 = {value} }}." if isinstance(value, int | float) else ""
    if Closed in _parts(kind):
        return 'Write load = { kind = "closed", concurrency = 16 }.'
    if isinstance(value, str) and {"int", "float"} & set(kinds) and value.strip().replace(".", "", 1).isdigit():
        return "Write the number without quotes."
    if isinstance(value, str) and "bool" in kinds and value.lower() in ("true", "false"):
        return "Write it without quotes."
    return "Put it in brackets: [ … ]." if kinds == ["array"] and not isinstance(value, dict) else ""


def _meant(key: str, schema: type[Struct]) -> str:
    """The nearest known key, or the table the key belongs to."""
    if schema is Settings and key in OTHER_NAMES:
        return f'Did you mean "{OTHER_NAMES[key]}"?'
    if schema is Candidate and key in OTHER_NAMES:
        return f'Did you mean "{OTHER_NAMES[key]}" under "settings"?'
    home = next((name for name, below in _tables_below(schema) if key in _keys(below)), None)
    if home is not None:
        return f'"{key}" belongs under "{home}".'
    if key in _keys(Profile):
        return f'"{key}" belongs above the first [table] of the file.'
    return did_you_mean(key, _keys(schema))


def _keys(schema: type[Struct]) -> tuple[str, ...]:
    """The keys of a table as they are written."""
    return tuple(field.encode_name for field in msgspec.structs.fields(schema))


def _tables_below(schema: type[Struct]) -> Iterator[tuple[str, type[Struct]]]:
    """The tables right below a table, each with its key."""
    for field in msgspec.structs.fields(schema):
        for part in _parts(field.type):
            if isinstance(part, type) and issubclass(part, Struct):
                yield field.encode_name, part


def _missing_fix(key: str, path: str) -> str:
    """What to add for a key that must be there."""
    match key, path:
        case "workload", "":
            return "Add a [workload] table with prompt_tokens."
        case "candidates", "":
            return "Add at least one [[candidates]] table with name and engine."
        case _:
            return f"Add {key}."


def _parts(kind: Any) -> tuple[Any, ...]:
    """The alternatives of a type, without annotations."""
    if get_origin(kind) is Annotated:
        return _parts(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(part for option in get_args(kind) for part in _parts(option))
    return (kind,)


def _not_finite(value: Any, path: str) -> Iterator[Fault]:
    """NaN and infinity, wherever they stand: no record can hold them."""
    match value:
        case float() if not isfinite(value):
            yield Fault(path, f"can't be {value}", "Write a number, or leave the key out.")
        case dict():
            for key, part in value.items():
                yield from _not_finite(part, f"{path}.{key}" if path else key)
        case list():
            for index, part in enumerate(value):
                yield from _not_finite(part, place(path, index, part))
        case _:
            pass
