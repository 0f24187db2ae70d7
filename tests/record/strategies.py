"""Any value of a record type, for property tests."""

import types
import typing
from functools import cache
from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

from deploytui.record.events import AnyEvent

NAMES = ("a", "b", "unplanned")


@cache
def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a struct, union, literal, container or plain type."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([of(arg) for arg in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        return st.lists(of(args[0]), max_size=2).map(tuple) if args[-1] is ... else st.tuples(*map(of, args))
    if origin is dict:
        return st.dictionaries(st.text(max_size=4), of(args[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(kind)
    return _plain(kind)


def _struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    fields = {f.name: of(hints[f.name]) for f in msgspec.structs.fields(kind)}
    for name in fields.keys() & {"candidate", "name"}:
        if hints[name] is str:
            fields[name] = st.sampled_from(NAMES)
    return st.builds(kind, **fields)


def _plain(kind: Any) -> st.SearchStrategy[Any]:
    known: dict[Any, st.SearchStrategy[Any]] = {
        int: st.integers(-(2**60), 2**60),
        float: st.floats(allow_nan=False, allow_infinity=False),
        str: st.text(max_size=6),
        bool: st.booleans(),
        type(None): st.none(),
        Any: st.integers(0, 9),
    }
    return known[kind]


EVENTS: st.SearchStrategy[AnyEvent] = of(AnyEvent)
EVENT_LISTS = st.lists(EVENTS, max_size=12)
