"""The gates a profile asks for, each judged on one figure: held, missed, too near to tell, or not judgeable."""

from collections.abc import Iterator
from math import ceil
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict

from deploytui.compare.statistics import contains, requests_to_settle
from deploytui.decide.figures import Figure, figure
from deploytui.decide.reasons import against_limit, plain, with_figure
from deploytui.decide.subject import Subject
from deploytui.decide.wording import between, compared, title
from deploytui.profile.schema import Gates, Limits
from deploytui.record.verdict import Reason

Confirm = Literal["point", "interval"]


class Gate(Struct, frozen=True):
    """A gate: the profile's key, the metric it limits, the code of a miss, and how it is decided by default."""

    key: str
    metric: str
    code: str
    upper: bool
    """Whether the limit is the most allowed, not the least."""
    confirm: Confirm


GATES: tuple[Gate, ...] = (
    Gate("min_quality", "quality", "quality_below_min", False, "point"),
    Gate("max_quality_drop", "quality_drop", "quality_drop", True, "point"),
    Gate("min_success_rate", "success_rate", "success_rate_low", False, "point"),
    Gate("min_format_pass_rate", "format_pass_rate", "format_below_min", False, "point"),
    Gate("max_ttft_ms", "ttft_ms", "ttft_over_max", True, "interval"),
    Gate("max_tpot_ms", "tpot_ms", "tpot_over_max", True, "interval"),
    Gate("max_e2e_ms", "e2e_ms", "e2e_over_max", True, "interval"),
    Gate("min_output_tok_s", "output_tok_s", "throughput_below_min", False, "interval"),
    Gate("min_request_s", "request_s", "throughput_below_min", False, "interval"),
    Gate("min_goodput", "goodput", "goodput_below_min", False, "interval"),
    Gate("max_peak_gpu_gib", "peak_gpu_gib", "memory_over_max", True, "point"),
    Gate("max_peak_host_gib", "peak_host_gib", "memory_over_max", True, "point"),
    Gate("max_cold_start_s", "cold_start_s", "cold_start_over_max", True, "point"),
    Gate("max_prepare_s", "prepare_s", "prepare_over_max", True, "point"),
    Gate("max_cost_per_mtok", "cost_per_mtok", "cost_over_max", True, "interval"),
    Gate("max_artifact_gib", "artifact_gib", "artifact_over_max", True, "point"),
)
"""Rates over a fixed set decide on the observed value; what is measured once has no interval to decide on."""


class Asked(Struct, frozen=True):
    """A gate with its limit; `metric` names the statistic too."""

    gate: Gate
    metric: str
    limit: float
    confirm: Confirm


def asked_gates(gates: Gates) -> tuple[Asked, ...]:
    """Every limit the profile sets, in the table's order; empty when nothing is asked."""
    return tuple(
        Asked(gate, metric, limit, gates.confirm.get(gate.key, gate.confirm))
        for gate in GATES
        for metric, limit in _limits(gate.metric, getattr(gates, gate.key))
    )


def _limits(metric: str, limit: float | Limits | None) -> Iterator[tuple[str, float]]:
    match limit:
        case None:
            return
        case Limits():
            yield from ((f"{metric}.{name}", value) for name, value in asdict(limit).items() if value is not None)
        case _:
            yield metric, limit


def judged(subject: Subject, asked: Asked) -> Reason:
    """What the gate says of the candidate: a passed line, a miss of its own code, or unfit evidence."""
    found = figure(subject, asked.metric)
    if found.value is None:
        return _unjudged(asked, found)
    if asked.confirm == "interval" and contains(found.interval, asked.limit):
        return _too_near(subject, asked, found, found.value)
    margin = asked.limit - found.value if asked.gate.upper else found.value - asked.limit
    passed = margin >= 0
    sign = {(True, True): "≤", (True, False): ">", (False, True): "≥", (False, False): "<"}[asked.gate.upper, passed]
    text = compared(found, sign, asked.limit)
    return against_limit(asked.gate.code, found, asked.limit, margin, text, passed=passed)


def _unjudged(asked: Asked, found: Figure) -> Reason:
    if found.needed is not None and found.n is not None and found.n < found.needed:
        text = f"{title(found.metric)} needs {found.needed} samples and has {found.n}"
        fix = f"Measure at least {found.needed} successful requests over all repeats."
        return against_limit("insufficient_samples", found, asked.limit, None, text, fix=fix)
    text = f"{title(found.metric)} can't be judged: {found.why}"
    return against_limit("missing_measurements", found, asked.limit, None, text)


def _too_near(subject: Subject, asked: Asked, found: Figure, value: float) -> Reason:
    margin = asked.limit - value if asked.gate.upper else value - asked.limit
    text = compared(found, "is too near to", asked.limit) + f": its interval {between(found.interval)} holds the limit"
    return against_limit("noisy", found, asked.limit, margin, text, fix=_settling(subject, asked, found, value))


def _settling(subject: Subject, asked: Asked, found: Figure, value: float) -> str:
    """How much measuring would tell, roughly."""
    needed = found.interval and requests_to_settle(value, found.interval, asked.limit, found.n or 0)
    if not needed:
        return "The value stands at the limit, so more measuring hardly helps: move the limit, or use gates.confirm."
    done = subject.metrics.requests if subject.metrics else 0
    if found.of == "items":
        return f"About {needed} quality items would settle it (now {found.n})."
    if not found.by_repeats:
        return f"About {needed} requests would settle it (now {found.n})."
    repeats = max(len(subject.repeats), 1)
    needed_repeats = ceil(repeats * needed / max(found.n or 1, 1))
    requests = ceil(done / repeats) * needed_repeats
    return f"About {requests} requests in {needed_repeats} repeats would settle it (now {done} in {repeats})."


def unavailable(subject: Subject, asked: Asked) -> Reason | None:
    """The note that a gate can't be judged on this node at all; None where it can."""
    environment = subject.state.environment
    if asked.gate.key != "max_peak_gpu_gib" or environment is None or environment.gpus:
        return None
    return plain("gate_unavailable", "max_peak_gpu_gib can't be judged: this node has no GPU", metric=asked.metric)


def missing(metric: str, text: str, *, fix: str = "") -> Reason:
    """A required figure that is absent."""
    return with_figure("missing_measurements", Figure(metric=metric), text, fix=fix)
