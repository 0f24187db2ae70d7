"""What the cells of a row say, and which columns fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deploytui.record.events import AnyEvent, PhaseStarted, RunSet, SessionEnded
from deploytui.record.facts import Failure
from deploytui.record.state import CandidateState, SessionState
from deploytui.tui.cells import row_cells
from deploytui.tui.columns import cell_of, layout, titles
from deploytui.tui.headline import Source, Standing
from deploytui.tui.pieces import text_of, width_of
from deploytui.tui.progress import runner_ns
from deploytui.tui.rows import RowBook, view_of
from tests.tui.facts import START, WALL, at
from tests.tui.states import cpu_events, finished_events, measuring_events, simulated_events, state_of


def standing(state: SessionState, source: Source = "running", *, later_s: float = 0.0) -> Standing:
    wall_s = WALL + ((state.at_ns or START) - START) / 1e9 + later_s
    return Standing(state, source, now_ns=runner_ns(state, wall_s))


def cells(events: list[AnyEvent], name: str, source: Source = "running") -> dict[str, str]:
    state = state_of(events)
    shown = row_cells(state.candidates[name], state.verdict(name), view_of(standing(state, source)))
    return {key: text_of(parts) for key, parts in shown.items()}


def test_a_measured_candidate_shows_its_numbers_and_verdict() -> None:
    row = cells(measuring_events(), "vllm-bf16")
    assert row["phase"] == "done 01:40"
    assert row["memory"].split() == ["▇▇▇▇▇", "70.1"]
    assert row["tokens"] == "▇▇▇▇▇ 4\u2009812"
    assert (row["ttft"], row["tpot"], row["quality"]) == ("182 ms", "11.2 ms", "0.86")
    assert row["verdict"] == "✔ accept"


def test_a_running_candidate_shows_progress_over_all_repeats_and_pending_numbers() -> None:
    row = cells(measuring_events(), "vllm-fp8")
    assert row["phase"] == "measuring 19% 00:17"
    assert (row["ttft"], row["quality"]) == ("…", "…")
    assert row["verdict"] == "· running"


def test_a_candidate_before_its_turn_shows_nothing() -> None:
    row = cells(measuring_events(), "sglang-bf16")
    assert row["phase"] == "queued"
    assert {row[key] for key in ("memory", "tokens", "ttft", "tpot", "quality", "verdict")} == {""}


def test_missing_numbers_are_dashes_never_0() -> None:
    row = cells(finished_events(), "gguf-q4", "ended")
    assert {row[key] for key in ("memory", "tokens", "ttft", "tpot", "quality")} == {"–"}
    assert row["verdict"] == "✘ load_failed: oom"
    assert row["verdict.short"] == "✘ load_failed"


def test_unsupported_and_tune_say_why() -> None:
    assert cells(finished_events(), "sglang-bf16", "ended")["verdict"] == "– unsupported: not_installed"
    assert cells(finished_events(), "vllm-fp8", "ended")["verdict"] == "~ tune: noisy"


def test_out_of_memory_under_load_is_a_failed_run() -> None:
    oom = RunSet(
        at_ns=at(230),
        candidate="vllm-fp8",
        run="run_failed",
        failure=Failure(kind="crashed", what="it crashed"),
        oom=True,
    )
    assert cells([*finished_events(), oom], "vllm-fp8", "ended")["verdict"] == "✘ run_failed: oom"


def test_a_session_that_was_cut_off_says_so() -> None:
    assert cells(measuring_events(), "vllm-fp8", "died")["phase"] == "cut off measuring"
    assert cells(measuring_events(), "sglang-bf16", "died")["phase"] == "not run"


def test_too_few_samples_for_p95_show_p50_in_every_row_and_in_the_heading() -> None:
    view = view_of(standing(state_of(cpu_events())))
    assert view.quantile == "p50"
    assert titles(gpu=view.gpu, quantile=view.quantile)["ttft"] == "TTFT p50"
    assert cells(cpu_events(), "one-thread")["ttft"] == "144 ms"


def test_host_memory_is_labelled_and_never_stands_for_a_gpu() -> None:
    view = view_of(standing(state_of(cpu_events())))
    assert titles(gpu=view.gpu, quantile="p95")["memory"] == "host GiB"
    state = state_of(measuring_events())
    cpu_only = replace(state.candidates["vllm-bf16"], gpu=type(state.candidates["vllm-bf16"].gpu)(), memory=None)
    assert text_of(row_cells(cpu_only, None, view_of(standing(state)))["memory"]) == "–"


def test_a_number_of_one_repeat_is_marked_as_such() -> None:
    state = state_of(measuring_events())
    row = replace(state.candidates["vllm-bf16"], measured={}, phase="measuring")
    assert text_of(row_cells(row, None, view_of(standing(state)))["ttft"]) == "~182 ms"


def test_simulated_rows_are_stamped_whether_the_engine_column_fits_or_not() -> None:
    row = cells(simulated_events(), "mock-slow")
    assert row["engine"] == "SIMULATED"
    assert row["verdict.sim"] == "SIMULATED · running"


def test_names_of_others_are_plain_text() -> None:
    state = state_of(measuring_events())
    row = CandidateState(name="a[b]\x1b[31m", engine_name="[/x]", artifact_label="q\t4")
    shown = row_cells(row, None, view_of(standing(state)))
    assert text_of(shown["name"]) == "a[b]␛[31m"
    assert text_of(shown["engine"]) == "[/x]"
    assert text_of(shown["artifact"]) == "q    4"


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (120, ["name", "engine", "artifact", "phase", "memory", "tokens", "ttft", "tpot", "quality", "verdict"]),
        (80, ["name", "phase", "memory", "tokens", "ttft", "verdict"]),
        (60, ["name", "phase", "tokens", "verdict"]),
    ],
)
def test_narrow_windows_lose_the_least_wanted_columns(width: int, keys: list[str]) -> None:
    rows = [row.cells for row in RowBook().rows(standing(state_of(finished_events()), "ended"), ())]
    columns = layout(width, rows, titles(gpu=True, quantile="p95"))
    assert [column.key for column in columns] == keys


@given(st.integers(40, 250))
def test_columns_never_overlap_nor_leave_the_window(width: int) -> None:
    rows = [row.cells for row in RowBook().rows(standing(state_of(finished_events()), "ended"), ())]
    columns = layout(width, rows, titles(gpu=True, quantile="p95"))
    ends = [column.x + column.width for column in columns]
    assert all(end < column.x for end, column in zip(ends, columns[1:], strict=False))
    assert ends[-1] <= max(width, 50)
    assert all(width_of(cell_of(cells, column)) == column.width for cells in rows for column in columns)


def test_rows_nothing_happened_to_are_the_same_objects() -> None:
    book, state = RowBook(), state_of(measuring_events())
    before = book.rows(standing(state), ())
    after = book.rows(standing(state, later_s=1.0), ())
    same = {new.name: new is old for old, new in zip(before, after, strict=True)}
    assert same == {"vllm-bf16": True, "vllm-fp8": False, "sglang-bf16": True, "gguf-q4": True}


def test_the_filter_looks_at_name_engine_artifact_phase_and_verdict() -> None:
    book, now = RowBook(), standing(state_of(finished_events()), "ended")
    assert [row.name for row in book.rows(now, (), "GGUF")] == ["gguf-q4"]
    assert [row.name for row in book.rows(now, (), "tune")] == ["vllm-fp8"]
    assert [row.name for row in book.rows(now, (), "vllm")] == ["vllm-bf16", "vllm-fp8"]


def test_the_winner_has_a_star() -> None:
    rows = RowBook().rows(standing(state_of(finished_events()), "ended"), ("vllm-fp8",))
    assert [row.star for row in rows] == ["★", "", "", ""]
    assert [row.marked for row in rows] == [False, True, False, False]


def test_an_engine_that_is_being_stopped_after_the_end_does_not_run_on() -> None:
    events = [*measuring_events(), SessionEnded(at_ns=at(170), exit_status=130)]
    assert cells(events, "vllm-fp8", "ended")["verdict"] == ""


def test_percent_of_loading_is_unknown_without_a_total() -> None:
    events = [*measuring_events(), PhaseStarted(at_ns=at(164), candidate="sglang-bf16", phase="loading")]
    assert cells(events, "sglang-bf16")["phase"] == "loading 00:00"
