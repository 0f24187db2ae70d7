"""The formats that hold every request or stamp: streamed from a session's files, never loaded whole."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from deploytui.errors import UsageError
from deploytui.export.finished import Complain, FinishedStep, finished_steps
from deploytui.export.requests import requests_jsonl
from deploytui.export.result import STAMP
from deploytui.export.stamps import stamps_binary, stamps_csv
from deploytui.profile.files import save_blocks
from deploytui.session.folder import SessionFolder
from deploytui.session.speech import say_bytes, tell
from deploytui.session.tail import load_state

Stream = Callable[[SessionFolder, Sequence[FinishedStep], Complain], Iterator[bytes]]

STREAMS: dict[str, Stream] = {"requests": requests_jsonl, "stamps": stamps_csv, "stamps-bin": stamps_binary}


def export_stream(source: SessionFolder | Path, format_name: str, output: Path | None) -> int:
    """Write a format of `STREAMS` to a file, or to standard output; the exit status, 1 when a part of it is missing.

    UsageError when the source is no session or the target is its own, SessionError when its journal can't be read,
    DeployError when the target can't be written; BrokenPipeError when the reader of standard output is gone.
    """
    folder = _session(source, format_name)
    if output is None and format_name == "stamps-bin" and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("stamps-bin is nothing for a terminal.", fix="Name a file with -o, or use --format stamps.")
    state, reader = load_state(folder.journal)
    steps, faults = finished_steps(state), list[str]()
    blocks = STREAMS[format_name](folder, steps, faults.append)
    if output is not None:
        _refuse_own(output, folder, steps)
        save_blocks(output, blocks)
    else:
        for block in blocks:
            say_bytes(block)
    _tell_about(steps, reader.unreadable, faults)
    return 1 if faults else 0


def _session(source: SessionFolder | Path, format_name: str) -> SessionFolder:
    if isinstance(source, SessionFolder):
        return source
    what = f"{source} is a profile: the {format_name} lie in its session's folder."
    raise UsageError(what, fix="Name the session; `deploytui sessions` lists them.")


def _refuse_own(output: Path, folder: SessionFolder, steps: Sequence[FinishedStep]) -> None:
    """Raise UsageError where the export would be written over what it is made from."""
    own = [folder.journal, folder.profile, *(folder.path / one.path for step in steps for one in step.sidecars)]
    if output.resolve() in {path.resolve() for path in own}:
        raise UsageError(f"{output} belongs to the session itself.", fix="Name another file for the export.")


def _tell_about(steps: Sequence[FinishedStep], unreadable: int, faults: Sequence[str]) -> None:
    """What a reader of the export should know, on standard error."""
    if unreadable:
        tell(f"deploytui: {unreadable} lines of the journal could not be read: what they told is missing here.")
    if not steps:
        tell("deploytui: No repeat and no quality task of this session is finished.")
    if names := sorted({step.key.candidate for step in steps if step.simulated}):
        tell(f"{STAMP}: {', '.join(names)}: no engine was measured, the numbers mean nothing.")
    for fault in faults:
        tell(f"deploytui: {fault}")
