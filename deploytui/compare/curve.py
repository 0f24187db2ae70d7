"""A candidate's curve over the points of its load: throughput against latency, its Pareto front and its knee. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from deploytui.record.measured import Metrics
from deploytui.record.planned import By, PlannedPoint

FEWEST_POINTS = 3
"""With fewer, a curve has no bend."""

SENSITIVITY = 1.0
"""S of Kneedle; its authors' choice for a curve that is complete."""


class CurvePoint(Struct, frozen=True, kw_only=True):
    """One point of the load, all repeats together; what was not measured there is None."""

    point: int
    by: By | None
    asked: float | None
    """Requests in flight, or per second."""
    label: str
    workload_key: str | None
    metrics: Metrics
    pareto: bool = False
    """Whether no other point has more throughput at no more latency."""
    knee: bool = False
    """Whether more load than here mostly adds latency."""

    @property
    def tok_s_per_user(self) -> float | None:
        """Tokens per second that one reader gets once they come: 1 / median TPOT."""
        tpot = self.metrics.tpot.p50
        return 1 / tpot if tpot else None


def curve(measured: Mapping[int, Metrics], points: Iterable[PlannedPoint]) -> tuple[CurvePoint, ...]:
    """The measured points by rising load, marked; a point nobody planned stands last, without what was asked."""
    known = {planned.point: planned for planned in points}
    found = [_point(known.get(number, PlannedPoint(point=number)), metrics) for number, metrics in measured.items()]
    ordered = sorted(found, key=lambda one: (one.asked is None, one.asked or 0.0, one.point))
    front, bend = pareto_front([_aims(one.metrics) for one in ordered]), _knee(ordered)
    return tuple(replace(one, pareto=place in front, knee=place == bend) for place, one in enumerate(ordered))


def _point(planned: PlannedPoint, metrics: Metrics) -> CurvePoint:
    return CurvePoint(
        point=planned.point,
        by=planned.by,
        asked=planned.asked,
        label=planned.label,
        workload_key=planned.workload_key or None,
        metrics=metrics,
    )


Aims = tuple[float | None, ...]
"""What a point is wanted for, more is better; None where it was not measured."""


def _aims(metrics: Metrics) -> Aims:
    """Throughput up, TTFT p95 and TPOT p95 down."""
    return metrics.output_tok_s, _less(metrics.ttft.p95), _less(metrics.tpot.p95)


def _less(value: float | None) -> float | None:
    return None if value is None else -value


def pareto_front(points: Sequence[Aims]) -> frozenset[int]:
    """The places of the points that no other dominates: none is as good in every aim and better in one.

    An aim that no point has is left out; a point that lacks one which others have neither dominates nor stands on the
    front, since nothing shows that it would.
    """
    asked = [aim for aim, values in enumerate(zip(*points, strict=True)) if any(value is not None for value in values)]
    whole = {
        place: values
        for place, point in enumerate(points)
        if asked and len(values := [value for aim in asked if (value := point[aim]) is not None]) == len(asked)
    }
    return frozenset(
        place for place, own in whole.items() if not any(_dominates(other, own) for other in whole.values())
    )


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(mine >= theirs for mine, theirs in pairs) and any(mine > theirs for mine, theirs in pairs)


def _knee(points: Sequence[CurvePoint]) -> int | None:
    """The place of the knee of throughput over load among the points."""
    known = [
        (place, one.asked, rate)
        for place, one in enumerate(points)
        if one.asked is not None and (rate := one.metrics.output_tok_s) is not None
    ]
    found = knee([asked for _, asked, _ in known], [rate for _, _, rate in known])
    return None if found is None else known[found][0]


def knee(loads: Sequence[float], throughputs: Sequence[float]) -> int | None:
    """The place where a rising, flattening curve bends most; None with fewer than 3 points, or where it does not bend.

    Kneedle (Satopää, Albrecht, Irwin and Raghavan, 2011): both axes are scaled to 0..1; the knee is the point
    furthest above the chord from the first load to the last, if behind it the curve comes back towards the chord by
    more than S times the mean distance between loads. `loads` must rise.
    """
    if len(loads) < FEWEST_POINTS or min(throughputs) == max(throughputs):
        return None
    above = [y - x for x, y in zip(_scaled(loads), _scaled(throughputs), strict=True)]
    best = max(range(len(above)), key=above.__getitem__)
    step = SENSITIVITY / (len(loads) - 1)
    return best if 0 < best < len(above) - 1 and min(above[best:]) < above[best] - step else None


def _scaled(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]
