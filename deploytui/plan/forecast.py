"""What a run of a profile will send, and for how long, told before it is sent. Pure."""

from collections.abc import Iterator

from deploytui.errors import ProfileError
from deploytui.plan.arrivals import span_s
from deploytui.plan.inputs import Inputs, conversations
from deploytui.plan.loads import at_point, most_users
from deploytui.profile.load_schema import Burst, Closed
from deploytui.profile.rules import sweep
from deploytui.profile.schema import Profile, Workload


def check_span(profile: Profile, inputs: Inputs) -> None:
    """Raise ProfileError when an open loop sends for longer than a session may last, and nothing stops it before."""
    workload, most = profile.workload, profile.timeouts.session
    longest = max((span for span in _spans(workload, inputs) if span is not None), default=0.0)
    # A span that is no number is too long too.
    if workload.max_seconds is None and not longest <= most:
        raise ProfileError(
            f"workload.load: one repeat takes {longest:.4g} s to send, and a session ends after {most:g} s.",
            fix="Lower workload.requests, raise the rate, set workload.max_seconds, or raise timeouts.session.",
        )


def forecast(workload: Workload, inputs: Inputs) -> Iterator[str]:
    """Points, requests and, for open loops, time of one candidate; sentences."""
    places = sweep(workload.load)
    measured = workload.requests * workload.repeats * len(places or (0,))
    warm = f", after {_count(workload.warmup_requests, 'request')} to warm up" if workload.warmup_requests else ""
    repeats, requests = _count(workload.repeats, "repeat"), _count(workload.requests, "request")
    if places is not None:
        key = "concurrency" if isinstance(workload.load, Closed) else "rate"
        listed = ", ".join(f"{place:g}" for place in places)
        points = _count(len(places), "point")
        yield f"{points}: {key} {listed}; gates and decision at {workload.decide_at or places[0]:g}."
        product = f"{points} × {repeats} × {requests}"
    else:
        product = f"{repeats} × {requests}"
    yield f"{product} = {_count(measured, 'request')} a candidate{warm}."
    if inputs.dataset is not None:
        items = _count(len(inputs.dataset.items), "item")
        yield f"{items} of {inputs.dataset.name}; their prompt tokens are as the server counts them."
    yield from _open_lines(workload, inputs)
    yield from _turn_lines(workload)


def _open_lines(workload: Workload, inputs: Inputs) -> Iterator[str]:
    spans = [span for span in _spans(workload, inputs) if span is not None]
    if not spans:
        return
    if isinstance(workload.load, Burst):
        yield f"All {workload.requests} requests of a repeat are sent at once, each on a connection of its own."
    else:
        sent = " + ".join(f"{span:.4g}" for span in spans) if len(spans) > 1 else f"{spans[0]:.4g}"
        yield (
            f"Open loop: a repeat sends for about {sent} s, so {sum(spans) * workload.repeats:.4g} s a candidate, "
            "and then waits for what is under way."
        )
    yield (
        "Open loop: nothing limits the requests in flight; an engine that must be told its slots gets "
        f"{OPEN_LOOP_SLOTS}, unless settings.max_num_seqs says."
    )


def _turn_lines(workload: Workload) -> Iterator[str]:
    if workload.turns == 1:
        return
    yield f"Conversations of up to {workload.turns} turns; a request is a turn, sent with all that was said before it."
    if not isinstance(workload.load, Closed):
        yield "Open loop: the rate counts conversations; a later turn is sent when the one before is answered."


OPEN_LOOP_SLOTS = 16
"""Requests that an engine with a fixed number of slots can serve at once, where the load has no concurrency."""


def engine_slots(workload: Workload) -> int:
    """The most requests that the workload keeps in flight; of an open loop, which has no such number, a usual one."""
    return most_users(workload.load) or min(OPEN_LOOP_SLOTS, workload.requests)


def _spans(workload: Workload, inputs: Inputs) -> Iterator[float | None]:
    """How long a repeat sends at each point [s]."""
    count = conversations(workload, workload.requests)
    times_s = inputs.trace.times_s if inputs.trace else ()
    for point in range(len(sweep(workload.load) or (0,))):
        span = span_s(at_point(workload.load, point), count, times_s)
        limit = workload.max_seconds
        yield span if span is None or limit is None else min(span, limit)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
