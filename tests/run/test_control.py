"""Words over the control socket, at the runner's end."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploytui.profile.parse import parse_profile
from deploytui.record.events import Planned
from deploytui.record.planned import PlannedCandidate
from deploytui.run.context import Context
from deploytui.run.control import obey, serve_words
from deploytui.run.recorder import Recorder
from deploytui.run.spares import Spares
from deploytui.run.ticker import Ticker
from deploytui.session.control import Request
from deploytui.session.folder import new_session
from deploytui.session.journal import Journal

pytestmark = pytest.mark.anyio
TEXT = '[workload]\nprompt_tokens = 8\n[[candidates]]\nname = "a"\nengine = "mock"\n'


@pytest.fixture
async def ctx(tmp_path: Path) -> Context:
    """A session with one candidate that has not begun."""
    folder = new_session(tmp_path, "x", datetime.now(UTC))
    journal, _ = Journal.open(folder.journal)
    recorder = Recorder(journal, complain=lambda _: None)
    row = PlannedCandidate(name="a", engine="mock", artifact="")
    recorder.say(Planned(at_ns=1, candidates=(row,), steps=(), workload_key="k"))
    return Context(
        profile=parse_profile(TEXT),
        folder=folder,
        base_dir=tmp_path,
        cache_dir=tmp_path,
        recorder=recorder,
        ticker=Ticker(recorder, folder),
        spares=Spares(folder.id, folder.path / "workers.log"),
    )


async def test_a_session_without_a_socket_goes_on_and_says_so(ctx: Context) -> None:
    ctx.folder.socket_note.mkdir()
    await serve_words(ctx)
    assert "Nobody can skip" in ctx.recorder.state.notes[-1]


async def test_a_pause_holds_the_next_step_until_it_is_over(ctx: Context) -> None:
    assert obey(ctx, Request(word="pause")).ok
    assert not ctx.halt.go.is_set()
    assert ctx.recorder.state.paused
    assert obey(ctx, Request(word="go_on")).ok
    assert ctx.halt.go.is_set()
    assert not ctx.recorder.state.paused


async def test_an_unknown_candidate_is_not_skipped(ctx: Context) -> None:
    reply = obey(ctx, Request(word="skip", candidate="b"))
    assert not reply.ok
    assert "b" in reply.text
    assert ctx.halt.skipped == set()


async def test_cancelling_twice_is_at_once(ctx: Context) -> None:
    obey(ctx, Request(word="cancel"))
    assert ctx.halt.interrupted
    assert not ctx.halt.hurry.is_set()
    obey(ctx, Request(word="cancel"))
    assert ctx.halt.hurry.is_set()
