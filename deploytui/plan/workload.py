"""What makes two workloads the same one."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from deploytui.plan.prompts import GENERATOR
from deploytui.profile.schema import Profile

KEY_DIGITS = 16


def workload_identity(profile: Profile, dataset_sha256: str | None = None) -> dict[str, Any]:
    """What the workload is: texts or their generator, lengths, counts, arrivals, sampling, endpoint.

    Not the seed, which only draws from it, nor the repeats, which only look at it more often.
    """
    workload = profile.workload
    load = {"kind": workload.load.__struct_config__.tag} | msgspec.structs.asdict(workload.load)
    return {
        "texts": {"generator": GENERATOR}
        if workload.dataset is None
        else {"dataset": dataset_sha256 or workload.dataset},
        "prompt_tokens": workload.prompt_tokens,
        "output_tokens": workload.output_tokens,
        "requests": workload.requests,
        "warmup_requests": workload.warmup_requests,
        "load": msgspec.to_builtins(load),
        "endpoint": workload.endpoint,
        "sampling": msgspec.structs.asdict(workload.sampling),
    }


def workload_key(profile: Profile, dataset_sha256: str | None = None) -> str:
    """A short name of the workload; equal names mean results may be compared."""
    return _sha256(json.dumps(workload_identity(profile, dataset_sha256), sort_keys=True, allow_nan=False))[:KEY_DIGITS]


def draw(sha256s: Iterable[str]) -> str:
    """The sha256 of all prompts of a session, from those of its prompt files in their order."""
    return _sha256("\n".join(sha256s))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
