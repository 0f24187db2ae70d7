"""The closed vocabularies of the record."""

from typing import Literal

Phase = Literal[
    "queued",
    "checking",
    "downloading",
    "preparing",
    "launching",
    "loading",
    "warming",
    "measuring",
    "quality",
    "stopping",
    "done",
]
"""Where a candidate is."""

Status = Literal["ready", "invalid_config", "unsupported", "load_failed", "load_success", "cancelled"]
"""About loading; never changed later."""

Run = Literal["ok", "run_failed", "gate_open", "interrupted"]
"""About measuring, after `load_success`."""

DecisionWord = Literal["accept", "tune", "reject"]

FailureKind = Literal[
    "oom",
    "bad_flag",
    "port_in_use",
    "broken_install",
    "not_installed",
    "no_adapter",
    "wrong_version",
    "wrong_device",
    "gated",
    "missing_file",
    "corrupt",
    "checksum_mismatch",
    "not_allowed",
    "prepare_failed",
    "timeout",
    "crashed",
    "unsupported_arch",
    "unsupported_format",
    "unsupported_quant",
    "unsupported_dtype",
    "unsupported_setting",
    "request_rejected",
    "wrong_model",
    "download_failed",
    "invalid_config",
    "skipped",
    "interrupted",
    "unknown",
]
