"""Random variates made of `random()` alone: Python's own may be made in another way some day. Pure."""

from math import cos, log, pi, pow, sqrt
from random import Random


def exponential(source: Random) -> float:
    """An exponential variate of mean 1, by inversion."""
    return -log(1.0 - source.random())


def normal(source: Random) -> float:
    """A standard normal variate, by Box and Muller; the second of the pair is not used."""
    return sqrt(-2.0 * log(1.0 - source.random())) * cos(2.0 * pi * source.random())


def gamma(source: Random, shape: float) -> float:
    """A gamma variate of that shape and of scale 1, so of mean `shape`; by Marsaglia and Tsang (2000)."""
    if shape < 1.0:
        return gamma(source, shape + 1.0) * pow(1.0 - source.random(), 1.0 / shape)
    d = shape - 1.0 / 3.0
    c = 1.0 / sqrt(9.0 * d)
    while True:
        x = normal(source)
        v = (1.0 + c * x) ** 3
        # The logarithm of what accepts x; v at or below 0 lies outside the distribution.
        if v > 0.0 and log(1.0 - source.random()) < 0.5 * x * x + d - d * v + d * log(v):
            return d * v
