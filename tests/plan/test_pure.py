"""Planning reaches no process, network, screen or GPU."""

import subprocess
import sys
from pathlib import Path

from deploytui import plan

IMPURE = ("anyio", "asyncio", "subprocess", "textual", "pynvml", "psutil", "aiohttp", "numpy")
MODULES = [path.stem for path in Path(plan.__file__).parent.glob("*.py") if path.stem != "__init__"]


def test_planning_and_reading_a_profile_load_nothing_that_acts() -> None:
    names = [f"deploytui.plan.{module}" for module in MODULES]
    names += [
        f"deploytui.profile.{module}"
        for module in ("parse", "write", "inert", "rules", "nearest", "faults", "workload_rules")
    ]
    code = f"import sys, {', '.join(names)}; print([name for name in {IMPURE!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
