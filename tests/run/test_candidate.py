"""However a candidate ends, the record says how, and the session goes on."""

from pathlib import Path
from typing import Any

import pytest

from deploytui.record.events import RunSet, StatusSet
from deploytui.record.facts import Failure
from deploytui.record.state import CandidateState
from deploytui.run import candidate as module
from deploytui.run.candidate import run_candidate
from deploytui.run.context import Context
from deploytui.run.failing import EngineDied
from tests.run.contexts import context

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ctx(tmp_path: Path) -> Context:
    """A session with one candidate that has not begun."""
    return context(tmp_path, tmp_path)


async def through(ctx: Context, monkeypatch: pytest.MonkeyPatch, *events: Any, error: Exception) -> CandidateState:
    """The candidate after stages that said these events and then raised."""

    async def stages(*_: object) -> None:
        for event in events:
            ctx.recorder.say(event)
        raise error

    monkeypatch.setattr(module, "run_stages", stages)
    with ctx.halt.session:
        await run_candidate(ctx, ctx.profile.candidates[0], (), None)  # type: ignore[arg-type]
    return ctx.row("a")


async def test_an_engine_that_dies_while_the_user_ends_the_session_has_its_cause_in_the_record(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx.halt.session.cancel()
    died = EngineDied(lambda: Failure(kind="oom", what="No memory."))
    row = await through(ctx, monkeypatch, StatusSet(at_ns=2, candidate="a", status="ready"), error=died)
    assert (row.status, row.failure and row.failure.kind) == ("load_failed", "oom")


async def test_a_defect_of_an_adapter_costs_its_candidate_only(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = await through(ctx, monkeypatch, error=KeyError("kv_cache"))
    assert row.status == "cancelled"
    assert row.failure is not None
    assert "KeyError: 'kv_cache'" in row.failure.why
    assert ctx.failed
    assert "Traceback" in capsys.readouterr().err


async def test_a_log_that_cannot_be_read_is_no_end_of_the_session(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain() -> Failure:
        raise OSError(5, "Input/output error")

    row = await through(ctx, monkeypatch, error=EngineDied(explain))
    assert row.failure is not None
    assert "Input/output error" in row.failure.why


async def test_what_was_measured_to_its_end_stays_when_the_disk_fills_afterwards(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = (
        StatusSet(at_ns=2, candidate="a", status="load_success"),
        RunSet(at_ns=3, candidate="a", run="ok"),
    )
    row = await through(ctx, monkeypatch, *measured, error=OSError(28, "No space left on device"))
    assert (row.status, row.run, row.failure) == ("load_success", "ok", None)
    assert ctx.failed
    assert "No space left on device" in ctx.recorder.state.notes[-1]
