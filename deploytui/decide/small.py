"""The small API: plain values in, plain dicts out, for scripts and notebooks."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from deploytui.compare.small import canonical, compare_deployment_records

__all__ = ["build_deployment_case", "compare_deployment_records", "make_deployment_decision"]

REQUIRED = ("quality", "ttft_ms")
"""What every loaded record must hold before any limit is looked at."""


def build_deployment_case(
    model_id: str, backend: str, model_format: str, hardware: str, workload: dict[str, Any]
) -> dict[str, Any]:
    """A case with status `ready` and its workload key; status `invalid_config` alone when one of the four texts is
    blank or no text, or the workload is empty or no dict.
    """
    texts = {"model_id": model_id, "backend": backend, "model_format": model_format, "hardware": hardware}
    if not all(isinstance(text, str) and text.strip() for text in texts.values()):
        return {"status": "invalid_config"}
    if not isinstance(workload, dict) or not workload:
        return {"status": "invalid_config"}
    return {"status": "ready", **texts, "workload": workload, "workload_key": _workload_key(workload)}


def _workload_key(workload: dict[str, Any]) -> tuple[tuple[str, Any], ...] | str:
    """The sorted items; canonical JSON where they can't be sorted or hashed."""
    try:
        key = tuple(sorted(workload.items(), key=lambda item: item[0]))
        hash(key)
    except TypeError:
        return canonical(workload)
    return key


def make_deployment_decision(summary: Mapping[str, Any], min_quality: float, max_ttft_ms: float) -> dict[str, Any]:
    """What to do about compared records (see `compare_deployment_records`): `{decision, accepted}` or
    `{decision, reason}`.

    Comparability comes first, then evidence, then the limits; both limits are inclusive.
    """
    loaded = [
        (row.get("name") or row.get("model_id") or f"record {place}", row)
        for place, row in enumerate(summary.get("records", ()))
        if row.get("status") == "load_success"
    ]
    if not summary.get("workload_consistent") or not loaded:
        return {"decision": "reject", "reason": "no_comparable_candidate"}
    missing = [name for name, row in loaded if not all(_is_measured(row.get(field)) for field in REQUIRED)]
    if missing:
        return {"decision": "tune", "reason": "missing_measurements", "missing": missing}
    accepted = [name for name, row in loaded if row["quality"] >= min_quality and row["ttft_ms"] <= max_ttft_ms]
    if accepted:
        return {"decision": "accept", "accepted": accepted}
    return {"decision": "reject", "reason": "limits_not_met"}


def _is_measured(value: Any) -> bool:
    """Whether a value is a finite number; True is an answer, not a measurement."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
