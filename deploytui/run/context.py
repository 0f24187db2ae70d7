"""What every part of the runner works with, and the small things it says over and over."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploytui.plan.inputs import NO_INPUTS, Inputs
from deploytui.plan.prompts import Calibration
from deploytui.profile.schema import Profile
from deploytui.record.event import Evidence
from deploytui.record.events import Decided, Note, PhaseEnded, PhaseStarted, PromptsMade
from deploytui.record.state import CandidateState, SessionState
from deploytui.record.verdict import Decision
from deploytui.record.words import Phase
from deploytui.run.halt import Halt
from deploytui.run.recorder import Recorder, now_ns
from deploytui.run.spares import Spares
from deploytui.run.ticker import Ticker
from deploytui.session.folder import SessionFolder
from deploytui.units import NS


def decide(profile: Profile, state: SessionState, over: bool) -> Decision:
    """As the product decides; imported when something is to be decided on."""
    from deploytui.decide.session import decide as judge

    return judge(profile, state, over)


Judge = Callable[[Profile, SessionState, bool], Decision]
"""Profile and state to the decision; the last says whether the session is over."""


@dataclass
class Context:
    """One session while it runs."""

    profile: Profile
    folder: SessionFolder
    base_dir: Path
    cache_dir: Path
    recorder: Recorder
    ticker: Ticker
    spares: Spares
    halt: Halt = field(default_factory=Halt)
    inputs: Inputs = NO_INPUTS
    """The files that the workload names."""
    prompts: PromptsMade | None = None
    """Made with the first engine that serves."""
    calibration: Calibration | None = None
    """How that engine counts; None where it does not tell, or no prompts have to be made."""
    recorded: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By candidate: the checksums that saved results hold of its files."""
    judge: Judge = decide
    """How a state is decided on, at its end or before it."""
    failed: bool = False
    """Whether the runner itself could not do its part for some candidate."""
    _noted: set[str] = field(default_factory=set)

    def row(self, name: str) -> CandidateState:
        """What is known of a candidate so far."""
        return self.recorder.state.candidates[name]

    def note(self, level: str, text: str, candidate: str | None = None) -> None:
        """Tell the reader of the session something."""
        self.recorder.say(Note(at_ns=now_ns(), level=level, text=text, candidate=candidate))  # type: ignore[arg-type]

    def note_once(self, level: str, text: str, candidate: str | None = None) -> None:
        """As `note`, unless the same was said before."""
        if text not in self._noted:
            self._noted.add(text)
            self.note(level, text, candidate)

    def decide_so_far(self) -> None:
        """Journal the decision as it stands."""
        so_far = self.judge(self.profile, self.recorder.state, False)
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
