"""The processes of a real engine below a running session, and whether they are gone."""

from collections.abc import Collection
from pathlib import Path

import psutil

from deploytui.record.events import PhaseStarted
from tests.run.sessions import events, wait_for


def engine_tree(runner: int, roles: Collection[str]) -> dict[str, psutil.Process]:
    """The processes below a runner whose command line holds one of these words, by that word."""
    found: dict[str, psutil.Process] = {}
    for process in psutil.Process(runner).children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        found.update({role: process for role in roles if role in line and "keeper" not in line})
    return found


def whole_tree(runner: int, roles: Collection[str]) -> dict[str, psutil.Process] | None:
    """The processes once all of them are there."""
    tree = engine_tree(runner, roles)
    return tree if len(tree) == len(roles) else None


def is_measuring(state: Path) -> bool:
    """Whether the one session there has come to its measurement."""
    return any(isinstance(event, PhaseStarted) and event.phase == "measuring" for event in events(state))


def assert_gone(tree: dict[str, psutil.Process]) -> None:
    """None of the processes lives; what is ending gets a moment to end."""
    wait_for(lambda: not [role for role, process in tree.items() if _lives(process)] or None, "the engine's end", 30)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
