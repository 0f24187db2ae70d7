"""What the tool itself may have added is in the JSON, the text and the progress lines; what is unknown is not 0."""

import io
import json

import msgspec
import pytest
from msgspec.structs import replace

from deploytui.export.metrics import load_metrics
from deploytui.export.reopen import state_from_saved
from deploytui.export.result import json_bytes, result
from deploytui.export.saved import saved_text
from deploytui.export.table import summary_text
from deploytui.export.tool_error import LATER_FIELDS, tool_error
from deploytui.profile.parse import parse_profile
from deploytui.record.events import Decided, Measured, RepeatDone
from deploytui.record.fold import fold
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics, ToolError
from deploytui.record.state import SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.run.plain import PlainView
from tests.export.parts import metrics, profile
from tests.export.sessions import whole_state
from tests.tui.facts import open_loop_metrics

BOUND = open_loop_metrics(client_bound=True)
EARLY = {"clock": "kernel", "lag_ms_p99": 0.2, "lag_ms_max": 0.5, "multi_chunk_read_share": 0.01, "clock_jumps": 1}
"""As the first version wrote it."""


def state_with(numbers: Metrics) -> SessionState:
    return fold(whole_state(), Measured(at_ns=10**12, candidate="fast", metrics=numbers))


def json_of(state: SessionState) -> dict[str, object]:
    rows = json.loads(json_bytes(result(profile(), state)))["candidates"]
    found: dict[str, object] = rows[0]["tool_error"]
    return found


def test_the_result_has_every_field_of_the_tools_error() -> None:
    assert json_of(state_with(BOUND)) == json.loads(msgspec.json.encode(BOUND.tool))
    assert json_of(SessionState()) == dict.fromkeys(ToolError.__struct_fields__)


def test_each_repeat_and_point_has_its_own() -> None:
    row = result(profile(), state_with(BOUND))["candidates"][0]
    assert row["points"][0]["tool_error"]["client_bound"] is True
    assert [repeat["tool_error"]["client_bound"] for repeat in row["repeats"]] == [False] * 3


def test_what_an_early_record_lacks_is_null_and_never_a_default() -> None:
    found = tool_error(metrics(tool=msgspec.convert(EARLY, ToolError)))
    assert {name: found[name] for name in LATER_FIELDS} == dict.fromkeys(LATER_FIELDS)
    assert {name: found[name] for name in EARLY} == EARLY


def test_late_sends_of_a_closed_loop_are_null() -> None:
    closed = metrics(tool=replace(BOUND.tool, late_sends=0, late_send_ms_max=None))
    assert tool_error(closed)["late_sends"] is None
    assert tool_error(BOUND)["late_sends"] == 3
    punctual = replace(BOUND, tool=replace(BOUND.tool, late_sends=0, late_send_ms_max=None))
    assert tool_error(punctual)["late_sends"] == 0


def test_a_worker_whose_cpu_is_unknown_survives_saving() -> None:
    numbers = replace(BOUND, tool=replace(BOUND.tool, worker_cpu_shares=(None, 0.5), worker_cpu_share=0.5))
    saved = parse_profile(saved_text(profile(), state_with(numbers)), "saved.toml")
    assert state_from_saved(saved).candidates["fast"].metrics == numbers


def test_the_text_tells_the_tools_error_below_the_reasons() -> None:
    text = summary_text(profile(), state_with(BOUND))
    for part in (
        "  failed: 12 of 615 requests (http_429 12)",
        "  cut off by the end of the load, and not counted: 3 of 615 requests",
        "  from the scheduled time: TTFT p50 190.0 ms, p95 240.0 ms, p99 310.0 ms; E2E p50 1500.0 ms",
        "  tool: kernel stamps over tcp, clock jumps 0; lag p50 0.04 ms p99 0.31 ms max 12.40 ms; several chunks in "
        "1.23 % of reads, 0.31 % read late; late sends 3, worst 2.13 ms; worker CPU 38 % 97 %",
        "  ✘ client_bound: worker 1 took 97 % of a core. Give the load more cores: load_workers = 4.",
    ):
        assert part in text
    assert text.count("tool:") == 1, "who was not measured has none"


def test_a_bottleneck_that_is_a_reason_of_the_verdict_is_told_once() -> None:
    reason = Reason(code="client_bound", text=BOUND.tool.client_bound_why)
    verdict = Verdict(candidate="fast", decision="tune", reasons=(reason,))
    decision = Decision(decision="tune", title="TUNE", verdicts=(verdict,))
    text = summary_text(profile(), fold(state_with(BOUND), Decided(at_ns=10**12, decision=decision)))
    assert text.count("client_bound: worker 1 took") == 1


def test_a_closed_loop_has_no_line_of_schedules_and_failures_it_had_not() -> None:
    text = summary_text(profile(), whole_state())
    assert "scheduled" not in text
    assert "  failed: " not in text.replace("load_failed", "")
    assert "  tool: user-space stamps over –, clock jumps 0; lag p50 – p99 0.10 ms max 0.33 ms" in text


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (metrics(), "24 of 24 ok in 2.3 s, TTFT p50 100 ms, TPOT p50 1.4 ms, 142.9 tok/s; user-space stamps, "),
        (
            open_loop_metrics(),
            "600 of 615 ok (http_429 12, 3 cut off by the load's end) in 16.0 s, TTFT p50 144 ms, 190 ms from the ",
        ),
        (open_loop_metrics(), "; kernel stamps, lag p99 0.31 ms, CPU 41 %"),
        (BOUND, "; client_bound: worker 1 took 97 % of a core."),
    ],
)
def test_the_line_of_a_repeat_tells_it_at_once(numbers: Metrics, said: str) -> None:
    out = io.StringIO()
    done = RepeatDone(at_ns=1, step=StepKey("fast", repeat=0), metrics=numbers, sidecars=())
    PlainView(out).see(done, SessionState())
    assert said in out.getvalue()


def test_an_open_loop_has_its_latencies_from_the_schedule_in_the_json() -> None:
    found = load_metrics(BOUND)
    assert found["ttft_scheduled_ms"]["p95"] == pytest.approx(240)
    assert found["e2e_scheduled_ms"]["p50"] == pytest.approx(1500)
    assert found["errors"] == {"http_429": 12, "cut_off": 3}
