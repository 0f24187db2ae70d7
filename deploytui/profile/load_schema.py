"""How requests arrive and how long they are: the tables of `workload.load` and of lengths."""

from msgspec import field

from deploytui.profile.strict import Positive, Rate, Seconds, Strict


class Closed(Strict, frozen=True, tag_field="kind", tag="closed"):
    """A fixed number of users, each sends its next request when the last one is answered."""

    concurrency: Positive | tuple[Positive, ...]
    think_time_s: Seconds = 0.0


class Constant(Strict, frozen=True, tag_field="kind", tag="constant"):
    """Requests at equal distances; `rate` in requests per second."""

    rate: Rate | tuple[Rate, ...]


class Poisson(Strict, frozen=True, tag_field="kind", tag="poisson"):
    """Requests at exponential distances; `rate` in requests per second."""

    rate: Rate | tuple[Rate, ...]


class Gamma(Strict, frozen=True, tag_field="kind", tag="gamma"):
    """Requests at gamma-distributed distances; burstiness 1 is Poisson, less is burstier."""

    rate: Rate | tuple[Rate, ...]
    burstiness: Rate = 1.0


class Burst(Strict, frozen=True, tag_field="kind", tag="burst"):
    """All requests at once."""


class Ramp(Strict, frozen=True, tag_field="kind", tag="ramp"):
    """The rate rises from `from` to `to` requests per second within `seconds`."""

    from_: Rate = field(name="from")
    to: Rate
    seconds: Rate


class Stage(Strict, frozen=True):
    """One stage of a staged load."""

    rate: Rate
    seconds: Rate


class Stages(Strict, frozen=True, tag_field="kind", tag="stages"):
    """Constant rates, one after the other."""

    stages: tuple[Stage, ...]


class TraceReplay(Strict, frozen=True, tag_field="kind", tag="trace"):
    """The arrivals of a recorded trace; `speed` 2 plays it twice as fast."""

    path: str
    speed: Rate = 1.0


Load = Closed | Constant | Poisson | Gamma | Burst | Ramp | Stages | TraceReplay


class Uniform(Strict, frozen=True, tag_field="kind", tag="uniform"):
    """Lengths [tokens] drawn evenly from `min` to `max`, both included."""

    min: Positive
    max: Positive


class Normal(Strict, frozen=True, tag_field="kind", tag="normal"):
    """Lengths [tokens] drawn from a normal distribution, drawn again while outside `min` and `max`."""

    mean: Rate
    std: Rate
    min: Positive = 1
    max: Positive | None = None


class Lognormal(Strict, frozen=True, tag_field="kind", tag="lognormal"):
    """Lengths [tokens] whose logarithm is normal; `mean` and `std` are of the lengths themselves."""

    mean: Rate
    std: Rate
    min: Positive = 1
    max: Positive | None = None


Lengths = Positive | Uniform | Normal | Lognormal
"""How long prompts or answers are [tokens]; a plain number is the same for all."""
