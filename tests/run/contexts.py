"""A session's context without its runner: one candidate, `a`, that has not begun."""

from datetime import UTC, datetime
from pathlib import Path

from deploytui.profile.parse import parse_profile
from deploytui.record.events import AnyEvent, Planned
from deploytui.record.planned import PlannedCandidate
from deploytui.run.context import Context
from deploytui.run.recorder import Recorder
from deploytui.run.spares import Spares
from deploytui.run.ticker import Ticker
from deploytui.session.folder import new_session
from deploytui.session.journal import Journal

TEXT = '[workload]\nprompt_tokens = 8\n[[candidates]]\nname = "a"\nengine = "mock"\n'


def context(state: Path, base_dir: Path, said: list[AnyEvent] | None = None) -> Context:
    """To be made where an event loop runs; `said` takes all events."""
    folder = new_session(state, "x", datetime.now(UTC))
    journal, _ = Journal.open(folder.journal)
    recorder = Recorder(journal, complain=lambda _: None)
    if said is not None:
        recorder.listeners.append(lambda event, _: said.append(event))
    row = PlannedCandidate(name="a", engine="mock", artifact="")
    recorder.say(Planned(at_ns=1, candidates=(row,), steps=(), workload_key="k"))
    folder.candidate_dir("a").mkdir(parents=True)
    return Context(
        profile=parse_profile(TEXT),
        folder=folder,
        base_dir=base_dir,
        cache_dir=base_dir / "cache",
        recorder=recorder,
        ticker=Ticker(recorder, folder),
        spares=Spares(folder.id, folder.path / "workers.log"),
    )
