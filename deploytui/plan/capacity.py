"""The search for the highest load within the gates: doubled until they are missed, then halved in between. Pure."""

from collections.abc import Generator, Iterable
from typing import NamedTuple

from deploytui.record.capacity import Capacity, Search, TriedPoint


class Ask(NamedTuple):
    """Measure this load once more; `repeat` counts from 0."""

    asked: float
    repeat: int


class Answer(NamedTuple):
    """What all repeats of a point so far say together."""

    held: bool
    """Whether the gates hold by the observed values."""
    settled: bool = True
    """Whether the intervals tell as much."""
    hopeless: bool = False
    """Whether they are missed by so much that no repeat will change it."""
    gate: str = ""
    why: str = ""
    over: str = ""
    """Why nothing more can be asked after this, such as the end of the engine; empty when it can."""


class Over(Exception):
    """Thrown into a walk when nothing more can be measured; says why."""


Walk = Generator[Ask, Answer, Capacity]
"""Yields what to measure, is sent the answer, returns the capacity; what is known of it when `Over` is thrown in."""


TIME_UP = "The time was up before the interval was as narrow as asked."


def search(asked: Search) -> Walk:
    """Walk from the lowest load to the capacity.

    Doubling begins at the lowest; the first load that misses the gates and the last that held them are halved until
    the interval is within the tolerance. A load that fails narrowly gets one look beyond it, so that answers which
    contradict each other are seen.
    """
    tried: list[TriedPoint] = []
    try:
        yield from _bracket(asked, tried)
        yield from _halve(asked, tried)
    except Over as over:
        return _summed(asked, tuple(tried), cut=str(over))
    return _summed(asked, tuple(tried))


def _bracket(asked: Search, tried: list[TriedPoint]) -> Generator[Ask, Answer, None]:
    """Double until the gates are missed or the highest load held them."""
    load = asked.lowest
    while True:
        point = yield from _try(asked, load, tried)
        if load >= asked.highest:
            return
        if not point.held:
            break
        load = min(2 * load, asked.highest)
    if not point.hopeless:
        yield from _try(asked, min(2 * load, asked.highest), tried)


def _halve(asked: Search, tried: list[TriedPoint]) -> Generator[Ask, Answer, None]:
    """Halve the interval between the last load that held and the first that did not."""
    low, high = _ends(tried)
    while low is not None and high is not None and high - low > _width(asked, low):
        middle = (low + high) / 2
        yield from _try(asked, float(int(middle)) if asked.by == "concurrency" else middle, tried)
        low, high = _ends(tried)


def _width(asked: Search, low: float) -> float:
    """The widest interval that need not be halved."""
    return max(asked.tolerance * low, 1.0 if asked.by == "concurrency" else 0.0)


def _try(asked: Search, load: float, tried: list[TriedPoint]) -> Generator[Ask, Answer, TriedPoint]:
    """Measure one load until it is settled, hopeless, or was measured as often as allowed."""
    repeats, answer = 1, (yield Ask(load, 0))
    while not answer.hopeless and repeats < (asked.repeats if answer.settled else asked.most_repeats):
        answer = yield Ask(load, repeats)
        repeats += 1
    held = answer.held and not answer.hopeless
    tried.append(
        TriedPoint(
            asked=load,
            repeats=repeats,
            held=held,
            noisy=not answer.settled and not answer.hopeless,
            hopeless=answer.hopeless,
            gate="" if held else answer.gate,
            why="" if held else answer.why,
        )
    )
    if answer.over:
        raise Over(answer.over)
    return tried[-1]


def _ends(tried: Iterable[TriedPoint]) -> tuple[float | None, float | None]:
    """The highest load that held below the lowest that did not, and that one; None where there is none."""
    points = list(tried)
    bad = min((point.asked for point in points if not point.held), default=None)
    good = [point.asked for point in points if point.held and (bad is None or point.asked < bad)]
    return max(good, default=None), bad


def _summed(asked: Search, points: tuple[TriedPoint, ...], cut: str = "") -> Capacity:
    """What the points say; `cut` is what ended the search too early."""
    low, high = _ends(points)
    failed = next((point for point in points if not point.held and point.asked == high), None)
    return Capacity(
        by=asked.by,
        value=low,
        first_bad=high,
        gate=failed.gate if failed else "",
        why=failed.why if failed else "",
        tried=points,
        notes=(*_notes(asked, points, high), *((cut,) if cut else ())),
        complete=not cut,
    )


def _notes(asked: Search, points: tuple[TriedPoint, ...], first_bad: float | None) -> Iterable[str]:
    for point in points:
        if point.noisy:
            word = "held" if point.held else "missed"
            yield (
                f"At {point.asked:.6g} the gates stayed undecided after {point.repeats} repeats; "
                f"by the observed values they are {word}."
            )
        if point.held and first_bad is not None and point.asked > first_bad:
            yield f"At {point.asked:.6g} the gates held, though at {first_bad:.6g} they did not."
    if first_bad is None and any(point.asked >= asked.highest for point in points):
        yield f"The highest load asked for, {asked.highest:.6g}, still held the gates: the capacity may be more."
