"""Words over the control socket, at the runner's end."""

from pathlib import Path

import pytest

from deploytui.run.context import Context
from deploytui.run.control import obey, serve_words
from deploytui.session.control import Request
from tests.run.contexts import context

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ctx(tmp_path: Path) -> Context:
    """A session with one candidate that has not begun."""
    return context(tmp_path, tmp_path)


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
