"""Start a runner that outlives whoever asked: as a command of its own that detaches itself."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from deploytui.errors import DeployError
from deploytui.session.folder import SessionFolder

READY_S = 120.0


def starter(state: Path) -> Callable[[Path, Sequence[str]], SessionFolder]:
    """`start_detached` with the state folder of this command."""

    def start(profile: Path, options: Sequence[str] = ()) -> SessionFolder:
        return start_detached(profile, options, state)

    return start


def start_detached(profile: Path, options: Sequence[str], state: Path) -> SessionFolder:
    """The session that `deploytui run --detach` has begun; DeployError with its words when it has not."""
    argv = [sys.executable, "-m", "deploytui", "run", "--detach", "--state-dir", str(state), *options, str(profile)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=READY_S, check=False)
    except subprocess.TimeoutExpired as error:
        what = f"The runner said nothing within {READY_S:g} s."
        raise DeployError(what, fix="Look at `deploytui sessions`.") from error
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0 or not said.startswith("ready "):
        raise DeployError("The runner did not start.", why=done.stderr.decode(errors="replace").strip() or said)
    return SessionFolder(Path(said.removeprefix("ready ")))
