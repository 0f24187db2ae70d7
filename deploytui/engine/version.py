"""Whether an engine's version is the one a profile asks for."""

import re

from msgspec import Struct

from deploytui.errors import ProfileError
from deploytui.record.facts import Failure

Key = tuple[tuple[int, ...], int]
"""Numbers of a release without zeros at its end, then -1 before it (rc, dev), 0 for it, 1 after it (post)."""

_CLAUSE = re.compile(r"^(==|!=|>=|<=|~=|>|<|)\s*v?(\d+(?:\.\d+)*)(?:(\.\*)|([-+._a-zA-Z0-9]*))$")
_VERSION = re.compile(r"(\d+(?:\.\d+)*)(.*)", re.DOTALL)
_BEFORE = re.compile(r"^[-._]?(a|b|c|rc|alpha|beta|pre|preview|dev)[-._]?\d*", re.IGNORECASE)
_AFTER = re.compile(r"^[-._]?(post|rev|r(?!c))[-._]?\d*", re.IGNORECASE)


class Clause(Struct, frozen=True):
    """One condition, such as `>=1.2`; `numbers` as written, `any_below` for `==1.2.*`."""

    operator: str
    numbers: tuple[int, ...]
    key: Key
    any_below: bool


def parsed_lock(lock: str) -> tuple[Clause, ...]:
    """The conditions of an `engine_version`; ProfileError when it is not understood."""
    return tuple(_clause(part.strip(), lock) for part in lock.split(","))


def _clause(part: str, lock: str) -> Clause:
    match = _CLAUSE.match(part)
    if match is None or (match[3] and match[1] not in ("==", "!=", "")):
        raise ProfileError(
            f"engine_version = {lock!r} is not understood.",
            fix='Write conditions such as "==0.33.0", ">=1,<2" or "==0.33.*".',
        )
    numbers = _numbers(match[2])
    return Clause(match[1] or "==", numbers, (_trimmed(numbers), _stage(match[4] or "")), bool(match[3]))


def version_key(version: str) -> Key | None:
    """What orders versions; None when there is no number in it. A local part such as `+cpu` does not count."""
    match = _VERSION.search(version)
    return (_trimmed(_numbers(match[1])), _stage(match[2])) if match else None


def satisfies(version: str, lock: str) -> bool | None:
    """Whether a version meets all conditions of a lock; None when the version can't be ordered."""
    key = version_key(version)
    return None if key is None else all(_holds(clause, key) for clause in parsed_lock(lock))


def wrong_version(engine: str, lock: str | None, found: str | None) -> Failure | None:
    """The failure of a lock that the version found does not meet; None when it does or there is no lock."""
    if lock is None or (found is not None and satisfies(found, lock)):
        return None
    told = f"{engine} is {found}" if found else f"{engine} does not tell its version"
    return Failure(
        kind="wrong_version",
        what=f"{told}, and engine_version asks for {lock}.",
        fix=f"Name an interpreter or binary with {engine} {lock}, or change engine_version.",
    )


def _holds(clause: Clause, key: Key) -> bool:
    match clause.operator:
        case "==" | "!=":
            equal = _within(key, clause.numbers) if clause.any_below else key == clause.key
            return equal == (clause.operator == "==")
        case "~=":
            return key >= clause.key and _within(key, clause.numbers[:-1])
        case ">=":
            return key >= clause.key
        case "<=":
            return key <= clause.key
        case ">":
            return key > clause.key
        case _:
            return key < clause.key


def _within(key: Key, numbers: tuple[int, ...]) -> bool:
    padded = key[0] + (0,) * len(numbers)
    return padded[: len(numbers)] == numbers


def _numbers(dotted: str) -> tuple[int, ...]:
    return tuple(int(part) for part in dotted.split("."))


def _trimmed(numbers: tuple[int, ...]) -> tuple[int, ...]:
    end = len(numbers)
    while end > 1 and numbers[end - 1] == 0:
        end -= 1
    return numbers[:end]


def _stage(rest: str) -> int:
    if _AFTER.match(rest):
        return 1
    return -1 if _BEFORE.match(rest) else 0
