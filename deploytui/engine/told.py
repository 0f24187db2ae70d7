"""Figures and words out of what engines write of themselves; None where it is no such figure."""

import math
from typing import Any

from msgspec.structs import replace

from deploytui.record.facts import EngineFacts

GIB = 1 << 30


def count(text: Any) -> int | None:
    """A whole number, thousands separated or not; None where it is none."""
    if isinstance(text, bool) or not isinstance(text, str | int):
        return None
    plain = str(text).replace(",", "").strip()
    return int(plain) if plain.isdecimal() and len(plain) < 20 else None


def seconds(text: Any) -> float | None:
    """A finite number that is not negative, such as a duration [s]; None where it is none."""
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def gib_bytes(text: Any) -> int | None:
    """A figure in GiB as bytes."""
    value = seconds(text)
    return None if value is None else round(value * GIB)


def words_of(text: Any) -> Any:
    """What Python wrote as text: True, False, None, a number, or the word itself without quotes."""
    if not isinstance(text, str):
        return text if isinstance(text, bool | int | float) else None
    plain = text.strip().strip("'\"")
    known = {"True": True, "False": False, "None": None}
    if plain in known:
        return known[plain]
    whole = count(plain)
    return whole if whole is not None else _number_or_word(plain)


def _number_or_word(plain: str) -> float | str:
    value = seconds(plain)
    return plain if value is None else value


def version_told(answer: Any) -> str | None:
    """The version of an answer such as `{"version": "1.2"}`."""
    return answer["version"] if isinstance(answer, dict) and isinstance(answer.get("version"), str) else None


def listed_context(models: Any, served: str | None) -> dict[str, Any]:
    """The context [tokens] that a model list tells of the served model, as `max_model_len`; empty where it does not."""
    rows = models.get("data") if isinstance(models, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("id") == served and type(row.get("max_model_len")) is int:
            return {"max_model_len": row["max_model_len"]}
    return {}


def added(facts: EngineFacts, settings: dict[str, Any], kv_cache: dict[str, Any]) -> EngineFacts:
    """The facts with what is known in addition; what they already hold stays."""
    return replace(
        facts,
        settings={**_known(settings), **facts.settings},
        kv_cache={**_known(kv_cache), **facts.kv_cache},
    )


def _known(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}
