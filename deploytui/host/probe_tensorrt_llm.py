"""Tell, as one JSON object, whether TensorRT-LLM can run here; run by path in the interpreter it would run in.

    python probe_tensorrt_llm.py --program trtllm-serve

Cheap questions first; the first that fails ends it: program or package, driver, compute capability, import.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from deploytui.host.probe import claim_stdout, distribution_version, place, without_own_folder
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from probe import claim_stdout, distribution_version, place, without_own_folder

DISTRIBUTIONS = ("tensorrt_llm", "tensorrt-llm")
LEAST = (8, 0)
IMPORT_TIMEOUT_S = 90
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


def look(program: str, packages_only: bool) -> dict[str, Any]:
    """The answer: what was found, and which of its needs failed, in the words of what told so."""
    answer: dict[str, Any] = {"found": False, "version": None, "error": "", "detail": place()}
    find(program, answer)
    if not answer["found"]:
        answer["error"] = "no program {} and no package {}".format(program, DISTRIBUTIONS[0])
        return answer
    if packages_only:
        return answer
    for name, question in (("driver", no_driver), ("capability", too_old), ("import", not_importable)):
        said = question()
        if said:
            answer["error"] = said
            answer["detail"]["failed"] = name
            break
    return answer


def find(program: str, answer: dict[str, Any]) -> None:
    """The program, beside this interpreter or on the path, and the package."""
    beside = os.path.join(os.path.dirname(sys.executable), program)
    path = beside if os.path.exists(beside) else shutil.which(program)
    versions = [version for version in map(distribution_version, DISTRIBUTIONS) if version]
    if path:
        answer["detail"]["program"] = path
    if versions:
        answer["version"] = versions[0]
        answer["detail"]["distribution"] = DISTRIBUTIONS[0]
    answer["found"] = bool(path or versions)


def no_driver() -> str:
    """What keeps the driver's libraries from being loaded, or from seeing a GPU; empty when nothing does."""
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            return str(error)
    status, count = gpu_count()
    if status:
        return "NVML can't be used: error {}".format(status)
    return "" if count else "NVML sees no GPU"


def gpu_count() -> tuple[int, int]:
    """NVML's status, 0 when it works, and how many GPUs it sees."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    number = ctypes.c_uint(0)
    status = nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(number))
    return int(status), int(number.value)


def too_old() -> str:
    """That no GPU is new enough; empty when one is, or when the driver does not tell."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    _, count = gpu_count()
    told = [capability for capability in (compute_capability(nvml, index) for index in range(count)) if capability]
    if not told or max(told) >= LEAST:
        return ""
    return "the newest GPU has compute capability {}.{}".format(*max(told))


def compute_capability(nvml: Any, index: int) -> Optional[tuple[int, int]]:
    """Of one GPU; None when the driver does not tell."""
    handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    if nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)):
        return None
    if nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)):
        return None
    return major.value, minor.value


def not_importable() -> str:
    """The last line of what importing the package writes when it fails; empty when it can be imported."""
    argv = [sys.executable, "-c", "import tensorrt_llm"]
    try:
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=IMPORT_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return "import tensorrt_llm did not end within {} s".format(IMPORT_TIMEOUT_S)
    lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    if ran.returncode == 0:
        return ""
    return lines[-1] if lines else "import tensorrt_llm ended with status {}".format(ran.returncode)


def main() -> None:
    """Print the answer."""
    parser = argparse.ArgumentParser(description="Tell whether TensorRT-LLM can run here.")
    parser.add_argument("--program", default="trtllm-serve")
    parser.add_argument("--packages-only", action="store_true", help="ask nothing that needs a GPU")
    options = parser.parse_args()
    without_own_folder()
    lines = claim_stdout()
    answer = look(options.program, options.packages_only)
    lines.write(json.dumps(answer) + "\n")
    lines.flush()


if __name__ == "__main__":
    main()
