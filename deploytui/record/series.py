"""A bounded series: the newest points as they came, older ones merged pairwise so that no peak is lost."""

from msgspec import Struct
from msgspec.structs import replace

FINE = 120
COARSE = 240


class Point(Struct, frozen=True):
    """A value over a stretch of time that ends at `at_ns`."""

    at_ns: int
    min: float
    max: float
    last: float


class Series(Struct, frozen=True):
    """At most FINE recent points and COARSE older ones, ascending in time."""

    coarse: tuple[Point, ...] = ()
    fine: tuple[Point, ...] = ()

    def points(self) -> tuple[Point, ...]:
        """All kept points, oldest first."""
        return self.coarse + self.fine

    @property
    def last(self) -> float | None:
        """The newest value; None of an empty series."""
        return self.fine[-1].last if self.fine else None


def merged(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """Half as many points: neighbours joined, extremes and last value kept."""
    pairs = zip(points[::2], points[1::2], strict=False)
    joined = tuple(Point(b.at_ns, min(a.min, b.min), max(a.max, b.max), b.last) for a, b in pairs)
    return joined + points[len(joined) * 2 :]


def append(series: Series, point: Point) -> Series:
    """The series with one more point."""
    fine = (*series.fine, point)
    if len(fine) <= FINE:
        return replace(series, fine=fine)
    coarse = series.coarse + merged(fine[: FINE // 2])
    if len(coarse) > COARSE:
        coarse = merged(coarse)
    return Series(coarse=coarse, fine=fine[FINE // 2 :])
