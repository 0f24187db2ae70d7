"""One figure out of an engine's metrics, by the names its adapter knows; chosen by what the answer is."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from deploytui.engine.protocol import MetricNames

WORST = frozenset({"kv_usage"})
"""Figures of which the largest of several series counts; all others are summed."""


class Reading(Struct, frozen=True):
    """A figure, and the name it was found under."""

    value: float
    name: str


def reading(names: MetricNames, figure: str, answer: Any) -> Reading | None:
    """The figure, such as `kv_usage`, that an answer tells; None where it tells none, which is not 0.

    Text is Prometheus text with a series for each engine process; a list is of iteration records, newest last.
    """
    own = getattr(names, figure)
    for name in (*((own,) if own else ()), *names.aliases.get(figure, ())):
        values = tuple(_values(name, answer))
        if values:
            return Reading(max(values) if figure in WORST else math.fsum(values), name)
    return None


def _values(name: str, answer: Any) -> Iterator[float]:
    if isinstance(answer, str):
        yield from (value for _, value in series(answer, name) if math.isfinite(value))
    elif isinstance(answer, list | dict):
        record = answer[-1] if isinstance(answer, list) and answer else answer
        if (value := _quotient(record, name)) is not None:
            yield value


def series(text: str, name: str) -> tuple[tuple[dict[str, str], float], ...]:
    """Labels and value of each series of a metric in Prometheus text; broken lines are passed over.

    A colon in a name counts as an underscore: some exporters turn one into the other.
    """
    from prometheus_client.parser import text_string_to_metric_families  # late: choosing an engine needs it not

    found: list[tuple[dict[str, str], float]] = []
    for line in _lines_of(text.splitlines(), name):
        try:
            families = tuple(text_string_to_metric_families(line + "\n"))
        except ValueError:
            continue
        found.extend((dict(sample.labels), sample.value) for family in families for sample in family.samples)
    return tuple(found)


def _lines_of(lines: Iterable[str], name: str) -> Iterator[str]:
    plain = name.replace(":", "_")
    for line in lines:
        told = line.partition("{")[0].partition(" ")[0]
        if told.replace(":", "_") == plain:
            yield line


def _quotient(record: Any, name: str) -> float | None:
    over, _, under = name.partition("/")
    value = _number(record, over)
    if not under or value is None:
        return value
    whole = _number(record, under)
    return value / whole if whole else None


def _number(record: Any, path: str) -> float | None:
    for key in path.split("."):
        record = record.get(key) if isinstance(record, dict) else None
    if isinstance(record, bool) or not isinstance(record, int | float) or not math.isfinite(record):
        return None
    return float(record)
