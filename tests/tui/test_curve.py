"""The curve of a sweep on the screen."""

from collections.abc import Iterable

import pytest

from deploytui.record.events import Measured, RepeatDone
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics
from deploytui.record.state import CandidateState, SessionState
from deploytui.tui.cells import newest_metrics
from deploytui.tui.details.curve import curve_lines
from deploytui.tui.pieces import Line, text_of, width_of
from tests.tui.curves import RATES, capacity_events, sweep_events
from tests.tui.screens import NARROW, WIDE, app_on, live, page
from tests.tui.states import finished_events, state_of


def one(state: SessionState) -> CandidateState:
    return state.candidates["vllm-bf16"]


def lines(state: SessionState, width: int = 76) -> list[str]:
    return texts(curve_lines(one(state), state.points, width))


def _last_repeat(event: Measured) -> RepeatDone:
    step = StepKey(event.candidate, point=event.point, repeat=0)
    return RepeatDone(at_ns=event.at_ns, step=step, metrics=event.metrics, sidecars=())


def texts(found: Iterable[Line]) -> list[str]:
    return [text_of(part) for part in found]


def test_each_point_has_a_row_with_its_marks() -> None:
    head, columns, *rows = lines(state_of(sweep_events()))
    assert "▸ decided here" in head
    assert columns.split()[:2] == ["users", "tok/s"]
    assert [row[:3] for row in rows] == [" • ", " • ", "▸•◆", " • ", " • "]
    assert [row[3:9].strip() for row in rows] == ["1", "4", "16", "64", "128"]


def test_the_grid_shows_the_point_that_is_decided_on() -> None:
    found: tuple[Metrics | None, bool] = newest_metrics(one(state_of(sweep_events(decided=3))))
    assert found[0] is not None
    assert found[0].output_tok_s == RATES[3]
    assert found[1]


def test_a_point_not_measured_yet_is_not_stood_for_by_another() -> None:
    events = [event for event in sweep_events(decided=2) if getattr(event, "point", None) != 2]
    assert newest_metrics(one(state_of(events))) == (None, False)


def test_before_all_repeats_are_done_the_curve_shows_the_last_ones_and_says_so() -> None:
    events = [_last_repeat(event) if isinstance(event, Measured) and event.point else event for event in sweep_events()]
    head, _, *rows = lines(state_of(events))
    assert "so far: last repeats" in head
    assert [row[3:9].strip() for row in rows] == ["1", "4", "16", "64", "128"]
    assert "so far" not in lines(state_of(sweep_events()))[0]


@pytest.mark.parametrize("width", [20, 40, 58, 76, 116])
def test_the_table_fits_where_columns_may_go(width: int) -> None:
    state = state_of(sweep_events())
    found = curve_lines(one(state), state.points, width)[1:]
    assert all(width_of(part) <= max(width, 34) for part in found)


def test_bars_stand_behind_the_table_where_there_is_room() -> None:
    assert "▇" not in "".join(lines(state_of(sweep_events()), 76))
    rows = lines(state_of(sweep_events()), 116)[2:]
    bars = [row.count("▇") for row in rows]
    assert bars == sorted(bars)
    assert 0 < bars[0] < bars[-1]


def test_a_single_load_has_no_curve() -> None:
    state = state_of(finished_events())
    assert lines(state) == []


def test_a_capacity_is_told_with_what_ended_it() -> None:
    first, second, *rest = lines(state_of(capacity_events()))
    assert first == "capacity 16 concurrent requests within the gates"
    assert second == "✘ at 17: TTFT p95 812 > 500 ms (n=600 requests)"
    assert any(row.startswith("▸•◆") for row in rest)
    assert any("time was up" in row for row in lines(state_of(capacity_events(complete=False))))


@pytest.mark.anyio
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_the_latency_tab_shows_the_curve_first(size: tuple[int, int]) -> None:
    app = app_on(live(sweep_events(), "ended"))
    async with app.run_test(size=size) as pilot:
        await pilot.press("2")
        await pilot.pause()
        text = "\n".join(page(app))
    assert "▸•◆" in text
    assert "tok/s" in text
