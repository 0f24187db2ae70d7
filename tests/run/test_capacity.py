"""The whole way from `deploytui capacity` to an answer, on simulated engines with a few slots."""

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from deploytui.record.events import CapacityFound, Planned, PromptsMade, RepeatDone
from tests.run.sessions import (
    Done,
    assert_nothing_left,
    begin,
    deploytui,
    ended,
    events,
    only_session,
    wait_for_event,
)

PROFILE = """
schema = 1
name = "cap"
timeouts = {{ load = 30, request = 20 }}
[workload]
prompt_tokens = 24
output_tokens = 4
requests = 8
load = {{ {load} }}
{decide_at}
warmup_requests = 1
repeats = 3
endpoint = "completions"
[gates]
{gates}
"""
CANDIDATE = '[[candidates]]\nname = "{name}"\nengine = "mock"\nargs = {args}\n'
SLOW = ("--ttft-ms", "60", "--itl-ms", "5", "--itl-slope-ms", "1")
"""75 ms a request alone; one slot more than that waits as long again."""
WITHIN_ONE_WAIT = "max_ttft_ms = { p50 = 110 }"


def profile(
    folder: Path,
    candidates: dict[str, Sequence[str]],
    *,
    gates: str = WITHIN_ONE_WAIT,
    load: str = 'kind = "closed", concurrency = 2',
    decide_at: str = "",
) -> Path:
    rows = "".join(CANDIDATE.format(name=name, args=str(list(args))) for name, args in candidates.items())
    path = folder / "cap.toml"
    path.write_text(PROFILE.format(gates=gates, load=load, decide_at=decide_at) + rows, encoding="utf-8")
    return path


def searched(tmp_path: Path, path: Path, *words: str) -> Done:
    return deploytui(tmp_path / "state", "capacity", path, "--json", "-", *words)


def test_each_candidate_is_searched_to_where_its_gates_are_missed(tmp_path: Path) -> None:
    path = profile(tmp_path, {"one": (*SLOW, "--slots", "1"), "three": (*SLOW, "--slots", "3")})
    done = searched(tmp_path, path, "--to", "8", "--repeats", "1")
    assert done.code == 0, done.err
    one, three = done.row("one"), done.row("three")
    assert one["capacity"]["value"] == 1
    assert 3 <= three["capacity"]["value"] < three["capacity"]["first_bad"] <= 8
    assert three["capacity"]["gate"] == "ttft_ms.p50"
    assert done.result()["decision"]["winner"] == "three"
    assert "first missed at" in done.err
    assert "three: concurrency 1, repeat 1: 8 of 8 ok" in done.err
    _check_points(done)
    _check_journal(tmp_path / "state")
    assert_nothing_left(only_session(tmp_path / "state").name)


def _check_points(done: Done) -> None:
    """What is known of each load stands in the result, and the metrics are those at the capacity."""
    three = done.row("three")
    asked = [point["asked"] for point in three["points"]]
    assert asked == sorted(asked)
    assert {1, 2, 4, 8} <= set(asked)
    assert len({point["workload_key"] for point in three["points"]}) == len(asked)
    (decided,) = (point for point in three["points"] if point["decided"])
    assert decided["asked"] == three["capacity"]["value"]
    assert decided["metrics"]["ttft_ms"] == three["metrics"]["ttft_ms"]
    assert done.result()["workload"]["search"]["highest"] == 8


def _check_journal(state: Path) -> None:
    """The same load is the same point, with the same prompts, for every candidate; the plan grew with the search."""
    said = events(state)
    plans = [event for event in said if isinstance(event, Planned)]
    assert len(plans[0].steps) == 2
    done = [event.step for event in said if isinstance(event, RepeatDone)]
    assert {step.key for step in plans[-1].steps} == set(done)
    made = [event for event in said if isinstance(event, PromptsMade)][-1]
    parts = {Path(file.path).stem for file in made.files}
    assert {f"p{step.point}.r{step.repeat}" for step in done} <= parts
    assert len(parts) == len(made.files)
    assert [event.candidate for event in said if isinstance(event, CapacityFound)] == ["one", "three"]


def test_gates_missed_at_the_lowest_load_end_it_after_one_repeat(tmp_path: Path) -> None:
    path = profile(tmp_path, {"slow": SLOW}, gates="max_ttft_ms = { p50 = 5 }")
    done = searched(tmp_path, path)
    assert done.code == 4, done.err
    found = done.row("slow")["capacity"]
    assert (found["value"], found["first_bad"], found["interval"]) == (None, 1, "none")
    assert [(point["repeats"], point["hopeless"]) for point in found["tried"]] == [(1, True)]
    assert done.row("slow")["verdict"]["reasons"][0]["code"] == "ttft_over_max"


def test_a_rate_is_searched_with_open_arrivals(tmp_path: Path) -> None:
    path = profile(tmp_path, {"one": (*SLOW, "--slots", "1")}, load='kind = "constant", rate = 8')
    done = searched(tmp_path, path, "--from", "8", "--to", "32", "--repeats", "1")
    found = done.row("one")["capacity"]
    assert done.code == 0, done.err
    assert found["by"] == "rate"
    assert 8 <= found["value"] < found["first_bad"] <= 32
    assert done.row("one")["points"][0]["label"] == "rate 8/s"


def test_time_that_is_up_leaves_what_is_known(tmp_path: Path) -> None:
    path = profile(tmp_path, {"one": SLOW})
    done = searched(tmp_path, path, "--budget", "0.001")
    found = done.row("one")["capacity"]
    assert done.code == 3, done.err
    assert (found["complete"], found["tried"]) == (False, [])
    assert "time was up" in found["notes"][0]


def test_an_engine_that_dies_under_its_load_keeps_what_it_bore(tmp_path: Path) -> None:
    path = profile(tmp_path, {"frail": (*SLOW, "--crash-after-requests", "150")})
    done = searched(tmp_path, path, "--repeats", "1")
    row = done.row("frail")
    assert done.code == 4, done.err
    assert row["run"] == "run_failed"
    assert row["capacity"]["first_bad"] == 2 * row["capacity"]["value"]
    assert row["capacity"]["notes"][-1] == "The engine ended at this load."


def test_an_interrupted_search_keeps_what_it_knows(tmp_path: Path) -> None:
    state = tmp_path / "state"
    running = begin(state, "capacity", profile(tmp_path, {"one": SLOW}))
    wait_for_event(state, RepeatDone)
    running.send_signal(signal.SIGINT)
    assert ended(running).code == 130
    (found,) = (event.capacity for event in events(state) if isinstance(event, CapacityFound))
    assert not found.complete
    assert found.notes[-1] == "The search was interrupted."


@pytest.mark.parametrize(
    ("gates", "words", "said"),
    [
        ("min_quality = 0.5", (), "max_ttft_ms, max_tpot_ms, max_e2e_ms, min_success_rate"),
        ("max_ttft_ms = { p99 = 100 }", (), "needs 100"),
        (WITHIN_ONE_WAIT, ("--from", "9", "--to", "4"), "no load from 9 to 4"),
        (WITHIN_ONE_WAIT, ("--from", "1.5"), "whole number"),
        (WITHIN_ONE_WAIT, ("--by", "users"), "--by"),
        (WITHIN_ONE_WAIT, ("--budget", "0"), "--budget"),
        (WITHIN_ONE_WAIT, ("--only", "on"), "one"),
    ],
)
def test_what_can_not_be_answered_is_refused_before_anything_starts(
    tmp_path: Path, gates: str, words: tuple[str, ...], said: str
) -> None:
    done = searched(tmp_path, profile(tmp_path, {"one": SLOW}, gates=gates), *words)
    assert done.code == 2
    assert said in done.err
    assert not list((tmp_path / "state").glob("*")) or not (tmp_path / "state").is_dir()


def test_a_sweep_is_a_curve_that_is_decided_on_at_its_point(tmp_path: Path) -> None:
    path = profile(
        tmp_path,
        {"two": (*SLOW, "--slots", "2")},
        load='kind = "closed", concurrency = [1, 2, 8]',
        decide_at="decide_at = 2",
    )
    done = deploytui(tmp_path / "state", "run", path, "--json", "-")
    row = done.row("two")
    assert [(point["asked"], point["decided"]) for point in row["points"]] == [(1, False), (2, True), (8, False)]
    assert [point["asked"] for point in row["points"] if point["knee"]] == [2]
    assert done.result()["workload"]["key"] == row["points"][1]["workload_key"]
    assert row["metrics"]["output_tok_s"] == row["points"][1]["metrics"]["output_tok_s"]
    assert [line["metric"] for line in row["verdict"]["held"]] == ["ttft_ms.p50"]
    assert "at concurrency 2" in done.result()["decision"]["title"]
    assert "▸•◆  concurrency 2" in done.err
