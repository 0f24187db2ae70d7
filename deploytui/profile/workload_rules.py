"""What in a workload must fit each other: where prompts come from, their lengths, headers and body."""

import string
from collections.abc import Iterator
from math import erf, log, sqrt
from typing import Any

import msgspec

from deploytui.profile.faults import Fault, shown
from deploytui.profile.load_schema import Lengths, Lognormal, Normal, Stages, TraceReplay, Uniform
from deploytui.profile.schema import Sampling, Workload

FEWEST_WITHIN = 0.01
"""Share of a distribution that must lie within `min` and `max`; else what is drawn is hardly that distribution."""

TOKEN_SIGNS = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~")
"""What a header's name is made of."""

FOR_KEYS = "Name the variable that holds the key with api_key_env; a profile holds no secrets."
OWN = "Remove it: each request sets it."
REFUSED_HEADERS = {
    "authorization": FOR_KEYS,
    "proxy-authorization": FOR_KEYS,
    "host": "Remove it: base_url says where requests go.",
    "content-length": OWN,
    "transfer-encoding": OWN,
    "connection": OWN,
    "accept-encoding": "Remove it: compressed answers have no chunks to stamp.",
    "x-request-id": "Remove it: each request has a number of its own, by which its record is found.",
}
"""Headers that a workload can't set, and what to do instead."""

SAMPLING = {
    field.name: f"Set it under workload.sampling: sampling = {{ {field.name} = ... }}."
    for field in (msgspec.structs.fields(Sampling))
}
REFUSED_BODY = SAMPLING | {
    "model": "Set served_model of the candidate.",
    "stream": "Remove it: answers are always streamed.",
    "messages": "Use prompt_tokens or dataset.",
    "prompt": "Use prompt_tokens or dataset.",
    "max_tokens": "Set workload.output_tokens.",
    "max_completion_tokens": "Set workload.output_tokens.",
    "seed": "Set workload.seed.",
    "n": "Remove it: one answer a request is measured.",
}
"""Fields of a request that a workload sets elsewhere, and where."""


def workload_faults(workload: Workload) -> Iterator[Fault]:
    """All faults of a workload but those of its sweep."""
    yield from _source_faults(workload)
    if isinstance(workload.load, Stages) and not workload.load.stages:
        yield Fault("workload.load.stages", "is empty", "Add stages such as { rate = 2, seconds = 60 }.")
    yield from _turn_faults(workload)
    if workload.prompt_tokens is not None:
        yield from _length_faults(workload.prompt_tokens, "workload.prompt_tokens")
    yield from _length_faults(workload.output_tokens, "workload.output_tokens")
    yield from _header_faults(workload.headers)
    yield from _body_faults(workload.body)


def _source_faults(workload: Workload) -> Iterator[Fault]:
    sources = (workload.prompt_tokens is not None, workload.dataset is not None)
    if not any(sources) and not isinstance(workload.load, TraceReplay):
        yield Fault("workload", "has no prompts", "Add prompt_tokens = 1024, or dataset = a JSONL file.")
    if all(sources):
        yield Fault("workload", "has both prompt_tokens and dataset", "Keep one of them.")
    if workload.dataset is not None and workload.shared_prefix is not None:
        fix = "Remove one of them: the prompts of a dataset begin as they are written."
        yield Fault("workload", "has both shared_prefix and dataset", fix)


def _turn_faults(workload: Workload) -> Iterator[Fault]:
    if workload.turns == 1:
        return
    if workload.endpoint != "chat":
        fix = 'Set endpoint = "chat", or remove turns.'
        yield Fault("workload.turns", f"is {workload.turns}, and only the chat endpoint knows turns", fix)
    if isinstance(workload.load, TraceReplay) and workload.prompt_tokens is None and workload.dataset is None:
        fix = "Add prompt_tokens, or remove turns: a trace's lengths are of whole requests."
        yield Fault("workload.turns", f"is {workload.turns}, and all lengths come from the trace", fix)


def _length_faults(lengths: Lengths, path: str) -> Iterator[Fault]:
    match lengths:
        case int():
            return
        case Uniform(min=low, max=high):
            if low > high:
                yield Fault(path, f"has min {low} above max {high}", "Exchange them.")
        case Normal(min=low, max=high, mean=mean) | Lognormal(min=low, max=high, mean=mean):
            if high is not None and low > high:
                yield Fault(path, f"has min {low} above max {high}", "Exchange them.")
            elif mean < low or (high is not None and mean > high):
                to = "on" if high is None else f"to {high}"
                yield Fault(path, f"has mean {mean:g} outside its limits, from {low} {to}", "Correct one of them.")
            elif (share := _share_within(lengths)) < FEWEST_WITHIN:
                fix = "Lower std, or let min and max be further apart."
                yield Fault(path, f"has {share:.1%} of its lengths within min and max", fix)


def _share_within(lengths: Normal | Lognormal) -> float:
    """The share of a distribution that is within its limits once it is rounded to whole tokens."""
    low, high = lengths.min - 0.5, None if lengths.max is None else lengths.max + 0.5
    return (1.0 if high is None else _below(lengths, high)) - _below(lengths, low)


def _below(lengths: Normal | Lognormal, tokens: float) -> float:
    """The share of a distribution below so many tokens."""
    if isinstance(lengths, Normal):
        return (1 + erf((tokens - lengths.mean) / lengths.std / sqrt(2))) / 2
    spread = lengths.std / lengths.mean
    variance = log(1.0 + spread * spread)
    if variance == 0:
        return float(tokens > lengths.mean)
    return (1 + erf((log(tokens) - log(lengths.mean) + variance / 2) / sqrt(2 * variance))) / 2


def _header_faults(headers: dict[str, str]) -> Iterator[Fault]:
    names = [name.lower() for name in headers]
    for name, value in headers.items():
        path = f"workload.headers.{name}"
        if not name or not TOKEN_SIGNS.issuperset(name):
            yield Fault("workload.headers", f"can't hold the name {shown(name)}", "Use letters, digits and dashes.")
        elif name.lower() in REFUSED_HEADERS:
            yield Fault(path, "can't be set here", REFUSED_HEADERS[name.lower()])
        elif names.count(name.lower()) > 1:
            yield Fault(path, "is there twice: case tells no headers apart", "Give each header once.")
        if not value.isprintable() or not _latin(value):
            fix = "Write it in plain text on one line."
            yield Fault(path, "holds signs that no header can hold", fix)


def _latin(text: str) -> bool:
    return all(ord(sign) < 256 for sign in text)


def _body_faults(body: dict[str, Any]) -> Iterator[Fault]:
    for key in body:
        if key in REFUSED_BODY:
            yield Fault(f"workload.body.{key}", "can't be set here", REFUSED_BODY[key])
