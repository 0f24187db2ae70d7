"""How a run begins on a command line: its programs are confirmed, and it may leave the terminal."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from deploytui.run.detach import detached
from deploytui.session.speech import say, tell

YES = ("y", "yes")


def confirm_programs(path: Path, state: Path, *, trust: bool) -> None:
    """Confirm what a profile names without running it: a check asks its interpreters and binaries for versions."""
    from deploytui.profile.files import read_text
    from deploytui.profile.parse import parse_profile
    from deploytui.session.trust import confirmed, fingerprint

    text = read_text(path)
    confirmed(parse_profile(text, str(path)), state, fingerprint(text), asker(trust=trust))


def asker(*, trust: bool) -> Callable[[Sequence[str]], bool]:
    """What confirms a profile's programs: everything with `trust`, else whoever sits at the terminal."""
    return (lambda _: True) if trust else ask


def ask(programs: Sequence[str]) -> bool:
    """Ask on a terminal; elsewhere nobody can say yes."""
    if not (sys.stdin and sys.stderr and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    tell("This profile would run:\n  " + "\n  ".join(programs) + "\nMay it? Type yes or no.")
    return sys.stdin.readline().strip().lower() in YES


def run_detached(path: Path, *, only: Sequence[str], state: Path, trust: bool) -> int:
    """Begin a session in a process of its own and say which one; the exit status of its start."""

    def begin() -> tuple[Path, Callable[[], int]]:
        from deploytui.run.foreground import run_here
        from deploytui.run.prepare import prepare

        prepared = prepare(path, state, only=only, confirm=asker(trust=trust))
        return prepared.folder.path, lambda: run_here(prepared, quiet=True).status

    if not trust and sys.stdin and sys.stdin.isatty():
        # Asked before the fork: a process that has left the terminal can't be talked with.
        confirm_programs(path, state, trust=False)
    said = detached(begin)
    (tell if said.status else say)(said.text)
    return said.status
