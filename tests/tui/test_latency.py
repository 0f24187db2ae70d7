"""The Latency tab and the explanation of a number: what the tool itself may have added is always there."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from deploytui.definitions import TEXTS
from deploytui.record.measured import ToolError
from deploytui.record.state import CandidateState
from deploytui.tui.cells import View
from deploytui.tui.details.explain import explain_lines
from deploytui.tui.details.latency import latency_lines
from deploytui.tui.pieces import Line, text_of
from tests.tui.facts import metrics, open_loop_metrics
from tests.tui.screens import NARROW, WIDE, app_on, live, page, shown
from tests.tui.states import finished_events, open_loop_events, state_of

VIEW = View(now_ns=None, gpu=True, quantile="p95", over=True)


def text(lines: Iterable[Line]) -> str:
    return "\n".join(map(text_of, lines))


def candidate(**events: bool) -> CandidateState:
    return state_of(open_loop_events(**events)).candidates["vllm-bf16"]


def test_the_tools_own_error_stands_below_the_latencies() -> None:
    said = text(latency_lines(candidate()))
    for part in (
        "kernel stamps over tcp, clock jumps 0",
        "lag p50 0.04 ms p99 0.31 ms max 12.40 ms",
        "several chunks in 1.23 % of reads, 0.31 % read late",
        "late sends 3, worst 2.13 ms",
        "worker CPU 38 % 41 %",
    ):
        assert part in said
    assert "client_bound" not in said


def test_a_client_that_was_the_bottleneck_is_told_first_and_with_what_to_do() -> None:
    first, *_, last = text(latency_lines(candidate(client_bound=True))).splitlines()
    assert "✘ client_bound" in first
    assert last.startswith("✘ client_bound: worker 1 took 97 % of a core.")
    assert "load_workers = 4" in last


def test_an_open_loop_shows_its_latencies_from_the_scheduled_time_too() -> None:
    lines = text(latency_lines(candidate())).splitlines()
    place = lines.index("from the scheduled time")
    assert lines[place + 1].split()[:3] == ["TTFT", "600", "200"]
    assert lines[place + 2].startswith("E2E")
    assert "success 98 % of 612 · http_429 12 · 3 cut off by the load's end" in text(latency_lines(candidate()))
    closed = state_of(finished_events()).candidates["vllm-bf16"]
    assert "scheduled" not in text(latency_lines(closed))
    assert "late sends" not in text(latency_lines(closed))


def test_what_an_early_record_does_not_know_is_a_dash() -> None:
    early = ToolError(clock="user", lag_ms_p99=0.1, lag_ms_max=0.4)
    old = replace(candidate(), measured={0: replace(metrics(), tool=early)})
    said = text(latency_lines(old))
    assert "user-space stamps over –, clock jumps 0" in said
    assert "lag p50 – p99 0.10 ms max 0.40 ms" in said
    assert "several chunks in – of reads, – read late" in said
    assert "worker CPU –" in said


@pytest.mark.parametrize("column", ["ttft", "tpot", "tokens"])
def test_the_explanation_of_a_number_tells_the_tools_error(column: str) -> None:
    said = text(explain_lines(column, candidate(client_bound=True), VIEW))
    assert "kernel stamps over tcp" in said
    assert "worker CPU 38 % 97 %" in said
    assert "client_bound: worker 1" in said
    assert "12 failed of 615 requests (http_429 12)" in said
    assert "3 cut off by the load's end" in said
    assert ("p50 190 ms p95 240 ms p99 310 ms" in said) == (column == "ttft")
    assert (TEXTS["ttft_scheduled"] in said) == (column == "ttft")


def test_words_of_others_can_not_reach_the_terminal() -> None:
    tool = replace(
        open_loop_metrics().tool, clock="\x1b[31m", path="\x07", client_bound=True, client_bound_why="\x1b[2J"
    )
    odd = replace(candidate(), measured={0: replace(open_loop_metrics(), tool=tool)})
    for lines in (latency_lines(odd), explain_lines("ttft", odd, VIEW)):
        assert not {"\x1b", "\x07"} & set(text(lines))


@pytest.mark.anyio
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_the_tools_error_is_seen_without_scrolling(size: tuple[int, int]) -> None:
    screen = live(open_loop_events(client_bound=True), "ended")
    app = app_on(screen)
    async with app.run_test(size=size) as pilot:
        await pilot.press("2")
        await pilot.pause()
        seen = "\n".join(page(app))
        assert "✘ client_bound  kernel stamps, lag p99 0.31 ms" in seen
        assert ("load_workers = 4" in seen) == (size == WIDE)
        assert "worker CPU 38 % 97 %" in shown(screen, "tab")
