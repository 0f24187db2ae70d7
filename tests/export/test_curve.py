"""The curve of a sweep and a capacity, in the result JSON, as text, and saved."""

from typing import Any

from deploytui.export.reopen import state_from_saved
from deploytui.export.result import result
from deploytui.export.saved import saved_text
from deploytui.export.table import summary_text
from deploytui.profile.parse import parse_profile
from deploytui.profile.schema import Profile
from deploytui.record.state import SessionState
from tests.tui.curves import RATES, USERS, capacity_events, sweep_events
from tests.tui.states import finished_events, state_of

NAMED = 'schema = 1\n[workload]\nprompt_tokens = 8\n[[candidates]]\nname = "vllm-bf16"\nengine = "vllm"\nmodel = "m"\n'


def asked() -> Profile:
    return parse_profile(NAMED, "p.toml")


def row(state: SessionState) -> dict[str, Any]:
    found: dict[str, Any] = result(asked(), state)["candidates"][0]
    return found


def test_each_point_says_what_was_asked_and_what_came_of_it() -> None:
    points = row(state_of(sweep_events()))["points"]
    assert [point["asked"] for point in points] == list(USERS)
    assert all(isinstance(point["asked"], int) for point in points)
    assert [point["metrics"]["output_tok_s"] for point in points] == list(RATES)
    assert [point["label"] for point in points][2] == "concurrency 16"
    assert [point["workload_key"] for point in points] == [f"key{place}" for place in range(len(USERS))]
    assert [point["decided"] for point in points] == [False, False, True, False, False]
    assert [point["asked"] for point in points if point["knee"]] == [16]
    assert all(point["pareto"] for point in points)


def test_the_numbers_of_a_candidate_are_those_of_the_point_that_is_decided_on() -> None:
    found = row(state_of(sweep_events(decided=1)))
    assert found["metrics"]["output_tok_s"] == RATES[1]
    assert found["metrics"]["ttft_ms"] == found["points"][1]["metrics"]["ttft_ms"]


def test_a_point_that_was_not_measured_leaves_its_numbers_missing() -> None:
    events = [event for event in sweep_events(decided=2) if getattr(event, "point", None) != 2]
    found = row(state_of(events))
    assert "output_tok_s" in found["missing"]
    assert len(found["points"]) == len(USERS) - 1


def test_the_text_shows_the_curve_with_its_marks() -> None:
    text = summary_text(asked(), state_of(sweep_events()))
    assert "vllm-bf16: ▸ decided here, • Pareto, ◆ knee" in text
    assert "▸•◆  concurrency 16" in text
    assert "first missed at" not in text


def test_without_a_sweep_there_is_no_curve() -> None:
    assert "Pareto" not in summary_text(asked(), state_of(finished_events()))


def test_a_capacity_stands_in_the_result_with_all_its_keys() -> None:
    found = row(state_of(capacity_events()))["capacity"]
    assert (found["by"], found["value"], found["first_bad"], found["interval"]) == ("concurrency", 16, 17, "16")
    assert found["gate"] == "ttft_ms.p95"
    assert [point["asked"] for point in found["tried"]] == [16, 17]
    assert set(found["tried"][0]) == {"asked", "repeats", "held", "noisy", "hopeless", "gate", "why"}
    search = result(asked(), state_of(capacity_events()))["workload"]["search"]
    assert (search["lowest"], search["highest"], search["repeats"], search["budget_s"]) == (1, 1024, 3, None)
    assert row(state_of(sweep_events()))["capacity"] is None


def test_the_text_tells_the_capacity_and_what_ended_it() -> None:
    text = summary_text(asked(), state_of(capacity_events()))
    line = next(line for line in text.splitlines() if line.startswith("vllm-bf16  16"))
    assert line.split()[1:4] == ["16", "17", "ttft_ms.p95"]


def test_a_saved_sweep_and_a_saved_capacity_open_as_they_were() -> None:
    for state in (state_of(sweep_events()), state_of(capacity_events())):
        again = state_from_saved(parse_profile(saved_text(asked(), state), "saved.toml"))
        assert again.points == state.points
        assert again.search == state.search
        assert again.candidates["vllm-bf16"].point == state.candidates["vllm-bf16"].point
        assert again.candidates["vllm-bf16"].capacity == state.candidates["vllm-bf16"].capacity
        assert row(again)["points"] == row(state)["points"]
