"""The driver's library and its binding: absent, broken, another one of that name; each in an interpreter of its own."""

import _ctypes
import os
import subprocess
import sys
from pathlib import Path


def run_python(script: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def with_some_library(folder: Path) -> str:
    """A folder in which the driver's library is found and can be loaded, whatever it is."""
    assert _ctypes.__file__ is not None
    (folder / "libnvidia-ml.so.1").symlink_to(_ctypes.__file__)
    return str(folder)


def test_without_a_driver_the_binding_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"no library")
    script = "import sys; from deploytui.telemetry.nvml import read_gpus; read_gpus(); print('pynvml' in sys.modules)"
    assert run_python(script, LD_LIBRARY_PATH=str(tmp_path)).stdout.strip() == "False"


def test_no_driver_library_is_said_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"no library")
    script = "from deploytui.telemetry.nvml import read_gpus; print(read_gpus().missing)"
    done = run_python(script, LD_LIBRARY_PATH=str(tmp_path))
    assert "NVML Shared Library Not Found" in done.stdout
    assert "--gpus all" in done.stdout


def test_a_wrong_binding_that_warns_on_import_stays_quiet(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text(
        "import warnings\nwarnings.warn('use the other package', FutureWarning)\n"
        "class NVMLError(Exception): value = 12\n"
        "def nvmlInit(): raise NVMLError('no library')\n",
        encoding="utf-8",
    )
    script = "from deploytui.telemetry.nvml import read_gpus; print(read_gpus().missing)"
    library = {"LD_LIBRARY_PATH": with_some_library(tmp_path)}
    done = run_python(script, PYTHONPATH=str(tmp_path), PYTHONWARNINGS="always", **library)
    assert done.stderr == ""
    assert "no library" in done.stdout


def test_a_missing_binding_is_said(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('gone')\n", encoding="utf-8")
    script = "from deploytui.telemetry.nvml import read_gpus; print(read_gpus().missing)"
    library = {"LD_LIBRARY_PATH": with_some_library(tmp_path)}
    assert "reinstall deploytui" in run_python(script, PYTHONPATH=str(tmp_path), **library).stdout


def test_importing_calls_no_driver() -> None:
    script = "import sys, deploytui.telemetry.nvml; print('pynvml' in sys.modules)"
    assert run_python(script).stdout.strip() == "False"
