"""The three ways to llama.cpp's server, and which of them a candidate gets.

In this order: the candidate's `command`; xllamacpp in its interpreter; llama_cpp (llama-cpp-python) in it. A candidate
that names neither command nor interpreter gets xllamacpp beside deploytui; without that a `llama-server` on PATH;
without that the environment that `setup-engine llama-cpp-python` made.
"""

import json
import shutil
import sys
from importlib.util import find_spec
from typing import Any, Literal

from msgspec.structs import replace

from deploytui.engine.adapter import common_judgement, interpreter, probe_with
from deploytui.engine.environments import environment_python
from deploytui.engine.protocol import Probe, Probed
from deploytui.engine.words import packages, place_of, probe_in
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure

Way = Literal["binary", "xllamacpp", "llama_cpp"]

PROGRAM = "llama-server"
BINDINGS = "llama-cpp-python"
"""What setup-engine calls the environment of the llama_cpp package."""

DISTRIBUTIONS = ("xllamacpp", "llama_cpp_python")
DEVICE_CALL = "xllamacpp:get_device_info"
OFFLOAD_CALL = "llama_cpp:llama_supports_gpu_offload"
CPU_TYPE = 0
"""What ggml calls a CPU among the device types."""


def binary(candidate: Candidate) -> tuple[str, ...] | None:
    """The llama-server command; None when a Python package serves."""
    if candidate.command:
        return candidate.command
    free = candidate.python is None and candidate.container is None
    return (PROGRAM,) if free and find_spec("xllamacpp") is None and shutil.which(PROGRAM) else None


def python_for(candidate: Candidate) -> str:
    """The interpreter whose package serves, where no binary does."""
    return interpreter(candidate) if find_spec("xllamacpp") else interpreter(candidate, BINDINGS)


def way(candidate: Candidate, probed: Probed | None) -> Way:
    """How the server is started; without a probe's word, by where the interpreter comes from."""
    if binary(candidate):
        return "binary"
    if probed is not None and (found := probed.detail.get("distribution")):
        return "llama_cpp" if found == "llama_cpp_python" else "xllamacpp"
    ours = environment_python(BINDINGS)
    return "llama_cpp" if ours is not None and python_for(candidate) == str(ours) else "xllamacpp"


def probe(candidate: Candidate) -> Probe | None:
    """The version, and the devices this build can use; None for a program of an image, which may have no Python."""
    server = binary(candidate)
    if server is None:
        calls = ("--module", "llama_cpp", "--call", DEVICE_CALL, "--call", OFFLOAD_CALL)
        return probe_in(candidate, python_for(candidate), *packages(*DISTRIBUTIONS, module="xllamacpp"), *calls)
    if candidate.container is not None:
        return None
    here = replace(candidate, python=sys.executable)
    devices = json.dumps([*server, "--list-devices"])
    return probe_with(here, "--version-of", json.dumps(server), "--output-of", devices)


def judge(candidate: Candidate, probed: Probed) -> Failure | None:
    """Not installed, broken, of the wrong version, without the GPU or the slots that are asked for."""
    server = binary(candidate)
    if server and not probed.found:
        return _no_binary(server[0], probed)
    where = server[0] if server else place_of(candidate, python_for(candidate))
    title = PROGRAM if server else way(candidate, probed)
    fix = (
        f"Run `{where} -m pip install xllamacpp` or `deploytui setup-engine {BINDINGS}`, "
        f"or name a {PROGRAM} binary with command."
    )
    judged = common_judgement(title, where, candidate, probed, fix)
    return judged or _device_failure(candidate, title, probed) or _slots_failure(candidate, probed)


def _no_binary(path: str, probed: Probed) -> Failure:
    return Failure(
        kind="not_installed",
        what=f"{path} can't be run as a {PROGRAM}.",
        why=probed.error,
        fix=f"Correct command: it starts with the path of a {PROGRAM} binary.",
    )


def _slots_failure(candidate: Candidate, probed: Probed) -> Failure | None:
    slots = candidate.settings.max_num_seqs or 1
    if slots == 1 or way(candidate, probed) != "llama_cpp":
        return None
    return Failure(
        kind="unsupported_setting",
        what=f"The llama_cpp package serves one request at a time, and max_num_seqs is {slots}.",
        fix="Remove settings.max_num_seqs, or name an interpreter that has xllamacpp.",
    )


def _device_failure(candidate: Candidate, title: str, probed: Probed) -> Failure | None:
    """The failure of a candidate that asks for CUDA with a build or node that has none; None when nobody can tell."""
    if candidate.device != "cuda" or _sees_gpu(probed) is not False:
        return None
    return Failure(
        kind="wrong_device",
        what=f'The candidate asks for device = "cuda", and this {title} sees no GPU.',
        why=_devices_shown(probed),
        fix="Name a llama-server built for CUDA with command, on a node with a GPU.",
    )


def _calls(probed: Probed) -> dict[str, Any]:
    calls = probed.detail.get("calls")
    return calls if isinstance(calls, dict) else {}


def _sees_gpu(probed: Probed) -> bool | None:
    devices = _calls(probed).get(DEVICE_CALL)
    if isinstance(devices, list):
        return any(device.get("type") != CPU_TYPE for device in devices if isinstance(device, dict))
    if isinstance(offloads := _calls(probed).get(OFFLOAD_CALL), bool):
        return offloads
    listed = probed.detail.get("output")
    return "CUDA" in listed if isinstance(listed, str) and "available devices" in listed.lower() else None


def _devices_shown(probed: Probed) -> str:
    devices = _calls(probed).get(DEVICE_CALL)
    if isinstance(devices, list):
        names = [f"{device.get('name')}: {device.get('description')}" for device in devices if isinstance(device, dict)]
        return f"Devices: {', '.join(names) or 'none'}."
    if OFFLOAD_CALL in _calls(probed):
        return "llama_supports_gpu_offload() is False."
    return str(probed.detail.get("output", "")).strip()
