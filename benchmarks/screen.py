"""`python -m benchmarks.screen [SESSION]`: start to first frame beside an empty Textual app, and bytes a second idle.

SESSION is a session folder; without one the newest of this user. Budgets: first frame at most 1.5 × the empty app's,
idle under 1 KB/s.
"""

import sys
from pathlib import Path
from statistics import median

from benchmarks.terminal import watch
from deploytui.session.folder import state_dir
from deploytui.session.listing import latest

EMPTY = """
from textual.app import App
from textual.widgets import Label
class Empty(App):
    def compose(self):
        yield Label("READY-SIGN")
Empty().run()
"""
RUNS = 7
LIMIT_S = 20.0


def first_frame(argv: list[str], sign: bytes) -> float:
    """Seconds until the first frame is out; SystemExit when none comes."""
    at_s = watch(argv, LIMIT_S, until=sign).first(sign)
    if at_s is None:
        raise SystemExit(f"{argv[:3]} drew nothing within {LIMIT_S:g} s")
    return at_s


def main() -> None:
    """Measure and print."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else getattr(latest(state_dir()), "path", None)
    if folder is None:
        raise SystemExit("There is no session to show: run `deploytui demo` first.")
    ours = [sys.executable, "-m", "deploytui", str(folder)]
    empty = [sys.executable, "-c", EMPTY]
    runs = [
        (first_frame(empty, b"READY-SIGN"), first_frame(ours, b"opening"), first_frame(ours, b"candidate"))
        for _ in range(RUNS)
    ]
    bare, live, whole = (median(run[place] for run in runs) for place in range(3))
    idle = watch(ours, 14.0).bytes_between(4.0, 14.0) / 10
    print(f"first frame: {live:.3f} s, empty app {bare:.3f} s, ratio {live / bare:.2f} (budget 1.5), {RUNS} runs")  # noqa: T201
    print(f"session on the screen: {whole:.3f} s")  # noqa: T201
    print(f"idle: {idle:.0f} bytes/s (budget 1000)")  # noqa: T201


if __name__ == "__main__":
    main()
