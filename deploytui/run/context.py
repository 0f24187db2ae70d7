"""What every part of the runner works with, and the small things it says over and over."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploytui.decide.session import decide
from deploytui.profile.schema import Profile
from deploytui.record.events import Decided, Evidence, Note, PhaseEnded, PhaseStarted, PromptsMade
from deploytui.record.state import CandidateState
from deploytui.record.words import Phase
from deploytui.run.halt import Halt
from deploytui.run.recorder import Recorder, now_ns
from deploytui.run.ticker import Ticker
from deploytui.session.folder import SessionFolder
from deploytui.units import NS


@dataclass
class Context:
    """One session while it runs."""

    profile: Profile
    folder: SessionFolder
    base_dir: Path
    cache_dir: Path
    recorder: Recorder
    ticker: Ticker
    halt: Halt = field(default_factory=Halt)
    prompts: PromptsMade | None = None
    """Made with the first engine that serves."""
    failed: bool = False
    """Whether the runner itself could not do its part for some candidate."""

    def row(self, name: str) -> CandidateState:
        """What is known of a candidate so far."""
        return self.recorder.state.candidates[name]

    def note(self, level: str, text: str, candidate: str | None = None) -> None:
        """Tell the reader of the session something."""
        self.recorder.say(Note(at_ns=now_ns(), level=level, text=text, candidate=candidate))  # type: ignore[arg-type]

    def decide_so_far(self) -> None:
        """Journal the decision as it stands."""
        so_far = decide(self.profile, self.recorder.state, final=False)
        if so_far != self.recorder.state.decision:
            self.recorder.say(Decided(at_ns=now_ns(), decision=so_far))

    @asynccontextmanager
    async def phase(self, candidate: str, phase: Phase, launch: int = 0) -> AsyncIterator[Evidence]:
        """A phase from its start to its end, whatever the end is; what the block puts in is its evidence."""
        began = now_ns()
        self.recorder.say(PhaseStarted(at_ns=began, candidate=candidate, launch=launch, phase=phase))
        evidence: Evidence = {}
        try:
            yield evidence
        finally:
            ended = now_ns()
            self.recorder.say(
                PhaseEnded(
                    at_ns=ended,
                    candidate=candidate,
                    launch=launch,
                    phase=phase,
                    seconds=(ended - began) * NS,
                    evidence=evidence,
                )
            )
