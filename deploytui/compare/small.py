"""Plain records side by side: whether they answer the same question, and how many loaded."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

COUNTED = ("load_success", "unsupported", "load_failed")


def compare_deployment_records(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether all records have one workload key, how many have each status, and the records themselves.

    Records without a key count as one more key, unless all lack it.
    """
    rows = list(records)
    keys = {_comparable(row.get("workload_key")) for row in rows}
    return {
        "workload_consistent": len(keys) <= 1,
        **{status: sum(row.get("status") == status for row in rows) for status in COUNTED},
        "records": rows,
    }


def _comparable(key: Any) -> str | None:
    """The key as text, alike before and after a trip through JSON, where a tuple comes back as a list."""
    return None if key is None else canonical(key)


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces, for values that JSON does not know their `repr`."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case set() | frozenset():
            return sorted((_plain(part) for part in value), key=canonical)
        case float() if value.is_integer():
            return int(value)
        case None | bool() | int() | float() | str():
            return value
        case _:
            return repr(value)
