"""Tell, as one JSON object, which operators the ONNX Runtime of this interpreter knows; run by path.

python probe_onnx.py
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

STANDARD = "ai.onnx"


def claim_stdout() -> TextIO:
    """Keep standard output for our one line; what a library prints goes to standard error."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return lines


def without_own_folder() -> None:
    """Take this file's folder from the import path: a file beside it must not stand for an installed module."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def operators() -> dict[str, Any]:
    """By domain: the newest operator set, and each operator with the first set that has it."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    opset: dict[str, int] = {}
    known: dict[str, dict[str, int]] = {}
    for schema in state.get_all_operator_schema():
        domain, since = schema.domain or STANDARD, int(schema.since_version)
        opset[domain] = max(since, opset.get(domain, 0))
        names = known.setdefault(domain, {})
        names[schema.name] = min(since, names.get(schema.name, since))
    return {"opset": opset, "operators": known}


def answer() -> dict[str, Any]:
    """The answer as a dict."""
    found: dict[str, Any] = {"found": False, "version": None, "error": "", "detail": {}}
    try:
        import onnxruntime

        found.update(found=True, version=onnxruntime.__version__)
        found["detail"]["providers"] = list(onnxruntime.get_available_providers())
        found["detail"]["onnx"] = operators()
    except Exception as error:  # noqa: BLE001 - a runtime may raise anything while it is imported
        found["error"] = "{}: {}".format(type(error).__name__, error)
    return found


def main() -> None:
    """Print the answer."""
    without_own_folder()
    lines = claim_stdout()
    lines.write(json.dumps(answer()) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
