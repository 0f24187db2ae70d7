"""Where `setup-engine` puts the environments of engines, and which interpreter a candidate gets."""

import os
import sys
from pathlib import Path

import platformdirs

from deploytui.profile.places import user_path
from deploytui.profile.schema import Candidate

VARIABLE = "DEPLOYTUI_ENGINES"


def engines_dir() -> Path:
    """The folder of all engine environments: DEPLOYTUI_ENGINES, else `engines` in the user's data folder."""
    named = os.environ.get(VARIABLE)
    return user_path(named) if named else platformdirs.user_data_path("deploytui") / "engines"


def environment_python(name: str) -> Path | None:
    """The interpreter of the environment that `setup-engine NAME` made; None where there is none that was finished."""
    folder = engines_dir() / name
    python = folder / "bin" / "python"
    return python if (folder / "ready.json").is_file() and python.exists() else None


def chosen_interpreter(candidate: Candidate, *environments: str) -> str:
    """The candidate's own interpreter, else the first of these environments that is there, else ours.

    In a container it is one of the image: what lies in environments of this node means nothing there.
    """
    if candidate.container is not None:
        return candidate.python or "python3"
    if candidate.python:
        return str(user_path(candidate.python))
    for name in environments:
        if (python := environment_python(name)) is not None:
            return str(python)
    return sys.executable
