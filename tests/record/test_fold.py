"""Events in, state out."""

from hypothesis import given

from deploytui.record import events as ev
from deploytui.record.events import AnyEvent
from deploytui.record.facts import Band, ColdStart, DeviceSample, Failure, MemoryUse
from deploytui.record.fold import NOTES_KEPT, fold, fold_all
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics, ToolError
from deploytui.record.metrics import measure
from deploytui.record.planned import PlannedCandidate, PlannedStep
from deploytui.record.state import SessionState
from tests.record.build import request
from tests.record.strategies import EVENT_LISTS


def planned(*names: str) -> ev.Planned:
    rows = tuple(PlannedCandidate(name=name, engine="mock", artifact="none") for name in names)
    steps = tuple(PlannedStep(key=StepKey(name, repeat=0), requests=1) for name in names)
    return ev.Planned(at_ns=1, candidates=rows, steps=steps, workload_key="k")


def metrics(ttft_ms: float = 100) -> Metrics:
    records = [request(0, ttft_ms=ttft_ms)]
    return measure(records, gaps_s=(), asked_tokens=11, target_concurrency=1, gates=None, tool=ToolError())


def started(boot: str = "b1", at_ns: int = 0) -> ev.SessionStarted:
    return ev.SessionStarted(
        at_ns=at_ns,
        session="s",
        name="n",
        schema=1,
        tool_version="0",
        definitions=1,
        wall_s=1.0,
        boot_id=boot,
        hostname="h",
        pid=1,
        base_dir="/",
        profile_sha256="",
        baseline=None,
    )


@given(EVENT_LISTS)
def test_no_sequence_of_events_stops_the_fold(events: list[AnyEvent]) -> None:
    state = fold_all([planned("a", "b"), *events])
    assert state.at_ns == (events[-1].at_ns if events else 1)
    assert fold_all(events, fold_all([planned("a", "b")])) == state


@given(EVENT_LISTS)
def test_events_before_the_plan_change_no_candidate(events: list[AnyEvent]) -> None:
    unplanned = [event for event in events if not isinstance(event, ev.Planned)]
    assert fold_all(unplanned).candidates == {}


def test_an_empty_session_knows_nothing() -> None:
    state = SessionState()
    assert (state.started, state.decision, state.at_ns, state.simulated) == (None, None, None, False)
    assert state.finished_steps == frozenset()


def test_an_event_about_an_unknown_candidate_moves_only_the_time() -> None:
    before = fold_all([planned("a")])
    after = fold(before, ev.PhaseStarted(at_ns=9, candidate="ghost", phase="loading"))
    assert after.candidates == before.candidates
    assert after.at_ns == 9


def test_a_repeat_measured_again_replaces_the_older_one() -> None:
    key = StepKey("a", repeat=0)
    state = fold_all(
        [
            planned("a"),
            ev.RepeatDone(at_ns=2, step=key, metrics=metrics(100), sidecars=()),
            ev.RepeatDone(at_ns=3, step=key, metrics=metrics(300), sidecars=()),
        ]
    )
    (record,) = state.candidates["a"].repeats
    assert record.metrics == metrics(300)
    assert state.finished_steps == frozenset({key})


def test_a_new_plan_keeps_what_candidates_already_have() -> None:
    done = ev.RepeatDone(at_ns=2, step=StepKey("a", repeat=0), metrics=metrics(), sidecars=())
    state = fold_all([planned("a"), done, planned("a", "b")])
    assert len(state.candidates["a"].repeats) == 1
    assert state.candidates["b"].repeats == ()


def test_a_resumed_session_keeps_its_first_start() -> None:
    state = fold_all(
        [started("b1"), ev.SessionEnded(at_ns=5, exit_status=130), ev.Asked(at_ns=6, word="pause"), started("b2", 7)]
    )
    assert state.first_started is not None
    assert state.started is not None
    assert (state.first_started.boot_id, state.started.boot_id) == ("b1", "b2")
    assert state.ended is None
    assert not state.paused


def test_out_of_memory_once_said_stays_said() -> None:
    failure = Failure(kind="oom", what="a ran out of memory.")
    state = fold_all(
        [
            planned("a"),
            ev.StatusSet(at_ns=2, candidate="a", status="load_success"),
            ev.RunSet(at_ns=3, candidate="a", run="run_failed", failure=failure, oom=True),
            ev.RunSet(at_ns=4, candidate="a", run="run_failed"),
        ]
    )
    row = state.candidates["a"]
    assert (row.status, row.run, row.oom, row.failure) == ("load_success", "run_failed", True, failure)


def test_rollups_grow_the_series_and_a_missing_value_adds_no_point() -> None:
    state = fold_all(
        [
            planned("a"),
            ev.Rollup(at_ns=2, candidate="a", interval_s=1.0, output_tok_s=Band(1.0, 9.0, 5.0)),
            ev.Rollup(at_ns=3, candidate="a", interval_s=1.0),
        ]
    )
    row = state.candidates["a"]
    assert [point.max for point in row.tokens.points()] == [9.0]
    assert row.gpu.points() == ()
    assert row.live is not None
    assert row.live.at_ns == 3


def test_each_gpu_has_its_own_series() -> None:
    devices = tuple(
        DeviceSample(uuid=f"GPU-{i}", index=i, name="H100", used_bytes=Band(0.0, float(i), 0.0)) for i in range(2)
    )
    state = fold_all([ev.NodeRollup(at_ns=1, interval_s=1.0, devices=devices)])
    assert {uuid: series.points()[0].max for uuid, series in state.gpu_used.items()} == {"GPU-0": 0.0, "GPU-1": 1.0}
    assert state.gpu_utilisation["GPU-0"].points() == ()


def test_a_new_phase_clears_the_progress_of_the_old_one() -> None:
    state = fold_all(
        [
            planned("a"),
            ev.PhaseStarted(at_ns=2, candidate="a", phase="loading"),
            ev.Progress(at_ns=3, candidate="a", done=5, total=10),
            ev.PhaseEnded(at_ns=4, candidate="a", phase="loading", seconds=2.0),
            ev.PhaseStarted(at_ns=5, candidate="a", phase="warming"),
        ]
    )
    row = state.candidates["a"]
    assert (row.phase, row.phase_since_ns, row.progress) == ("warming", 5, None)
    assert [record.phase for record in row.phases] == ["loading"]


def test_pause_and_go_on_are_kept_and_skip_leaves_them() -> None:
    paused = fold_all([planned("a"), ev.Asked(at_ns=2, word="pause"), ev.Asked(at_ns=3, word="skip", candidate="a")])
    assert paused.paused
    assert not fold(paused, ev.Asked(at_ns=4, word="go_on")).paused


def test_notes_are_bounded() -> None:
    state = fold_all([ev.Note(at_ns=i, level="warning", text=str(i)) for i in range(NOTES_KEPT + 50)])
    assert len(state.notes) == NOTES_KEPT
    assert state.notes[-1] == f"warning: {NOTES_KEPT + 49}"


def test_a_mock_candidate_makes_the_session_simulated() -> None:
    assert fold_all([planned("a")]).simulated


def test_a_start_without_one_of_its_parts_has_no_total() -> None:
    whole = ColdStart(launch_s=1.0, load_s=2.0, first_token_s=0.5, checksum_s=9.0)
    assert whole.total_s == 3.5
    assert ColdStart(launch_s=1.0, load_s=2.0).total_s is None


def test_sums_keep_an_earlier_quality_when_a_later_launch_has_none() -> None:
    state = fold_all(
        [
            planned("a"),
            ev.Summed(at_ns=2, candidate="a", memory=MemoryUse(peak_host_bytes=5), cold_start=ColdStart()),
            ev.Measured(at_ns=3, candidate="a", metrics=metrics()),
        ]
    )
    row = state.candidates["a"]
    assert row.memory == MemoryUse(peak_host_bytes=5)
    assert row.quality is None
    assert row.metrics == metrics()
