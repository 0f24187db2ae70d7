"""Lengths of prompts and answers, drawn from a seed. Pure."""

from math import exp, floor, log, sqrt
from random import Random

from deploytui.plan.streams import stream
from deploytui.plan.variates import normal
from deploytui.profile.load_schema import Lengths, Lognormal, Normal, Uniform

GENERATOR = "lengths/1"
"""Names this way of drawing; changes when the same seed gives other lengths."""

TRIES = 10_000
"""Draws for one length; profiles whose lengths fall within their limits too seldom are refused before."""


def draw_lengths(lengths: Lengths, count: int, seed: int, *place: str | int) -> list[int]:
    """`count` lengths [tokens], the same for the same seed and place; each at least 1 and within `min` and `max`."""
    if isinstance(lengths, int):
        return [lengths] * count
    source = stream(GENERATOR, seed, *place)
    return [_draw(lengths, source) for _ in range(count)]


def fixed(lengths: Lengths | None) -> int | None:
    """The one length of all [tokens]; None when they differ or are not given."""
    return lengths if isinstance(lengths, int) else None


def longest_possible(lengths: Lengths) -> int | None:
    """The largest length that can be drawn [tokens]; None when there is no limit."""
    return lengths if isinstance(lengths, int) else lengths.max


def _draw(lengths: Uniform | Normal | Lognormal, source: Random) -> int:
    if isinstance(lengths, Uniform):
        return lengths.min + int(source.random() * (lengths.max - lengths.min + 1))
    longest = float("inf") if lengths.max is None else lengths.max
    found = 0
    for _ in range(TRIES):
        found = floor(_value(lengths, source) + 0.5)
        if lengths.min <= found <= longest:
            return found
    return int(min(max(found, lengths.min), longest))


def _value(lengths: Normal | Lognormal, source: Random) -> float:
    if isinstance(lengths, Normal):
        return lengths.mean + lengths.std * normal(source)
    mu, sigma = log_parameters(lengths)
    # Beyond e^700 there is no float; nobody's `max` is there either.
    return exp(min(mu + sigma * normal(source), 700.0))


def log_parameters(lengths: Lognormal) -> tuple[float, float]:
    """Mean and standard deviation of the logarithm, from those of the lengths themselves."""
    spread = lengths.std / lengths.mean
    variance = log(1.0 + spread * spread)
    return log(lengths.mean) - variance / 2.0, sqrt(variance)
