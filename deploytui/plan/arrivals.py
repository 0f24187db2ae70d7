"""When the requests of an open loop shall be sent, from a seed. Pure."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain
from math import sqrt

from deploytui.plan.streams import stream
from deploytui.plan.variates import exponential, gamma
from deploytui.profile.load_schema import Burst, Closed, Constant, Gamma, Load, Poisson, Ramp, Stages, TraceReplay

GENERATOR = "arrivals/1"
"""Names this way of drawing; changes when the same seed gives other times."""

DIGITS = 9
"""Times are whole nanoseconds, so that the last bit of a logarithm makes no other file on another machine."""


def arrivals(
    load: Load, count: int, seed: int, *place: str | int, trace_times_s: Sequence[float] = ()
) -> tuple[float, ...] | None:
    """When each of `count` requests shall be sent, from the start [s], ascending; None for a closed loop.

    The first leaves at 0. The same seed and place give the same times; two rates of one place give times that differ
    in their scale alone. A rate must be one number here; a trace needs its times, at least `count` of them.
    """
    times = _times(load, count, seed, place, trace_times_s)
    return None if times is None else tuple(round(time, DIGITS) for time in times)


def span_s(load: Load, count: int, trace_times_s: Sequence[float] = ()) -> float | None:
    """How long sending `count` requests is expected to take [s]; None for a closed loop, whose server sets the pace."""
    match load:
        case Closed():
            return None
        case Poisson(rate=rate) | Gamma(rate=rate):
            return max(count - 1, 0) / _one(rate)
        case _:
            times = _times(load, count, 0, (), trace_times_s)
            return max(times, default=0.0) if times is not None else None


def _times(
    load: Load, count: int, seed: int, place: Sequence[str | int], trace_times_s: Sequence[float]
) -> Iterator[float] | None:
    numbers = range(count)
    match load:
        case Closed():
            return None
        case Burst():
            return (0.0 for _ in numbers)
        case Constant(rate=rate):
            return (number / _one(rate) for number in numbers)
        case Poisson(rate=rate):
            source = stream(GENERATOR, seed, "poisson", *place)
            return _summed(lambda: exponential(source) / _one(rate), count)
        case Gamma(rate=rate, burstiness=shape):
            source = stream(GENERATOR, seed, "gamma", *place)
            return _summed(lambda: gamma(source, shape) / shape / _one(rate), count)
        case Ramp():
            return (_on_ramp(load, number) for number in numbers)
        case Stages():
            return (_in_stages(load, number) for number in numbers)
        case TraceReplay(speed=speed):
            return ((time - trace_times_s[0]) / speed for time in trace_times_s[:count])


def _one(rate: float | tuple[float, ...]) -> float:
    assert not isinstance(rate, tuple), "a sweep is taken apart before"
    return rate


def _summed(gap: Callable[[], float], count: int) -> Iterator[float]:
    """Times with such gaps between them, the first at 0."""
    return accumulate(chain((0.0,), (gap() for _ in range(count - 1)))) if count else iter(())


def _on_ramp(load: Ramp, number: int) -> float:
    """When the cumulative rate of a ramp reaches `number` [s]: from·t + (to − from)·t²/2·seconds, then `to` goes on."""
    climbed = (load.from_ + load.to) / 2 * load.seconds
    if number > climbed:
        return load.seconds + (number - climbed) / load.to
    slope = (load.to - load.from_) / load.seconds
    return 2 * number / (load.from_ + sqrt(max(load.from_ * load.from_ + 2 * slope * number, 0.0)))


def _in_stages(load: Stages, number: int) -> float:
    """When the cumulative rate of the stages reaches `number` [s]; the last stage goes on."""
    began, left = 0.0, float(number)
    for stage in load.stages[:-1]:
        if left < stage.rate * stage.seconds:
            return began + left / stage.rate
        began, left = began + stage.seconds, left - stage.rate * stage.seconds
    return began + left / load.stages[-1].rate
