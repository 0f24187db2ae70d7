"""The words of the journal about a candidate's model and engine, apart from how they perform."""

from deploytui.record.event import Event
from deploytui.record.facts import Artifact, EngineFacts, Fit, Preparation, RecoveryCheck


class ArtifactRead(Event, frozen=True, tag="artifact", kw_only=True):
    """What the candidate's model is on disk."""

    candidate: str
    artifact: Artifact


class EngineRead(Event, frozen=True, tag="engine", kw_only=True):
    """The engine that runs, as it told itself."""

    candidate: str
    launch: int = 0
    engine: EngineFacts


class FitRead(Event, frozen=True, tag="fit", kw_only=True):
    """Whether the candidate will fit, as estimated before its launch."""

    candidate: str
    fit: Fit


class PreparationDone(Event, frozen=True, tag="prepared", kw_only=True):
    """One preparation of the candidate's model is done, or was found done."""

    candidate: str
    preparation: Preparation


class RecoveryDone(Event, frozen=True, tag="recovery", kw_only=True):
    """What the engine did after what it had to bear."""

    candidate: str
    checks: tuple[RecoveryCheck, ...]


class Freed(Event, frozen=True, tag="freed", kw_only=True):
    """The engine was stopped: what is left of it. Byte counts None where nothing can be read."""

    candidate: str
    launch: int = 0
    exit_code: int | None = None
    survivors: tuple[int, ...] = ()
    survivor_names: tuple[str, ...] = ()
    """What each of them calls itself, in the same order."""
    gpu_left_bytes: int | None = None
