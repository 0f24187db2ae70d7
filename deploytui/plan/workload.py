"""What makes two workloads the same one."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from deploytui.plan.loads import at_point
from deploytui.plan.prompts import GENERATOR
from deploytui.profile.load_schema import TraceReplay
from deploytui.profile.schema import Profile, Workload

KEY_DIGITS = 16


def workload_identity(
    profile: Profile,
    dataset_sha256: str | None = None,
    *,
    trace_sha256: str | None = None,
    point: int | None = None,
) -> dict[str, Any]:
    """What the workload is: texts or their generator, lengths, counts, arrivals, sampling, endpoint.

    Not the seed, which only draws from it, nor the repeats, which only look at it more often. With `point` it is the
    workload of that place of the sweep, equal to one that asks for that load alone. A key that was added later is
    left out where it is not used, so that what was saved before still is the same workload.
    """
    workload = profile.workload
    asked = workload.load if point is None else at_point(workload.load, point)
    load = {"kind": asked.__struct_config__.tag} | msgspec.structs.asdict(asked)
    if isinstance(asked, TraceReplay) and trace_sha256 is not None:
        load["path"] = trace_sha256
    return {
        "texts": {"generator": GENERATOR}
        if workload.dataset is None
        else {"dataset": dataset_sha256 or workload.dataset},
        "prompt_tokens": msgspec.to_builtins(workload.prompt_tokens),
        "output_tokens": msgspec.to_builtins(workload.output_tokens),
        "requests": workload.requests,
        "warmup_requests": workload.warmup_requests,
        "load": msgspec.to_builtins(load),
        "endpoint": workload.endpoint,
        "sampling": msgspec.structs.asdict(workload.sampling),
        **_used_keys(workload),
    }


def _used_keys(workload: Workload) -> dict[str, Any]:
    """Those of the keys that not every workload has."""
    keys = {
        "shared_prefix": workload.shared_prefix,
        "turns": workload.turns if workload.turns > 1 else None,
        "headers": {name.lower(): value for name, value in workload.headers.items()} or None,
        "body": workload.body or None,
        "max_seconds": workload.max_seconds,
        "max_error_rate": workload.max_error_rate,
    }
    return {key: msgspec.to_builtins(value) for key, value in keys.items() if value is not None}


def workload_key(
    profile: Profile,
    dataset_sha256: str | None = None,
    *,
    trace_sha256: str | None = None,
    point: int | None = None,
) -> str:
    """A short name of the workload, or of a point of its sweep; equal names mean results may be compared."""
    identity = workload_identity(profile, dataset_sha256, trace_sha256=trace_sha256, point=point)
    return _sha256(json.dumps(identity, sort_keys=True, allow_nan=False))[:KEY_DIGITS]


def draw(sha256s: Iterable[str]) -> str:
    """The sha256 of all prompts of a session, from those of its prompt files in their order."""
    return _sha256("\n".join(sha256s))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
