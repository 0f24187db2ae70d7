"""The finished steps of a session and the files that hold their requests, for exports that stream them."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from deploytui.record.facts import Sidecar
from deploytui.record.keys import StepKey
from deploytui.record.state import CandidateState, RepeatRecord, SessionState, TaskRecord
from deploytui.session.folder import SessionFolder

Kind = Literal["requests", "stamps"]
Complain = Callable[[str], None]
"""Takes a sentence on what is missing from an export; the rest of it goes on."""

_NAMES = {"requests": re.compile(r"\.requests\.w\d+\.jsonl$"), "stamps": re.compile(r"\.stamps\.w\d+\.bin$")}


class FinishedStep(Struct, frozen=True, kw_only=True):
    """A repeat or a quality task whose files are safe on disk, one of each kind a load worker.

    A warm-up is none: the journal does not vouch for its files.
    """

    key: StepKey
    simulated: bool
    sidecars: tuple[Sidecar, ...]

    @property
    def label(self) -> str:
        """The step within its candidate, such as `l0.p0.r2`, or `l0.p0.t-builtin:basic` of a quality task."""
        return self.key.label.removeprefix(f"{self.key.candidate}.")


def finished_steps(state: SessionState) -> tuple[FinishedStep, ...]:
    """All of a session: candidates in its order, each with its repeats and then its tasks as they were finished."""
    return tuple(
        FinishedStep(key=record.step, simulated=row.simulated, sidecars=record.sidecars)
        for row in state.candidates.values()
        for record in _finished(row)
    )


def _finished(row: CandidateState) -> tuple[RepeatRecord | TaskRecord, ...]:
    return (*row.repeats, *row.tasks)


def files_of(
    folder: SessionFolder, steps: Sequence[FinishedStep], kind: Kind, complain: Complain
) -> Iterator[tuple[int, Path]]:
    """Each file of a kind, with the place of its step in `steps`; what is missing, cut or changed is named."""
    for place, step in enumerate(steps):
        told = [one for one in step.sidecars if _NAMES[kind].search(one.path)]
        if not told:
            complain(f"{step.key.label}: the journal names no {kind} file.")
        for one in told:
            if _can_be_read(folder, one, complain):
                yield place, folder.path / one.path


def _can_be_read(folder: SessionFolder, told: Sidecar, complain: Complain) -> bool:
    """Whether the file is there, and no other's; its size is held against the journal's."""
    path = folder.path / told.path
    if not path.resolve().is_relative_to(folder.path.resolve()):
        complain(f"{told.path}: lies outside the session and is left out.")
        return False
    try:
        size = path.stat().st_size
    except OSError as error:
        complain(f"{told.path}: can't be read and is left out ({error.strerror}).")
        return False
    if size != told.bytes:
        complain(f"{told.path}: has {size} bytes in place of {told.bytes}; what is whole in it is exported.")
    return True
