"""The whole line on mock engines: launch, measure, decide, save."""

from pathlib import Path

import pytest

from deploytui.record.engine_events import Freed
from deploytui.record.events import Decided, PhaseStarted, SessionEnded
from tests.run.sessions import Done, assert_nothing_left, deploytui, events, only_session, write_profile


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """A finished session of a slow and a fast candidate."""
    folder = tmp_path_factory.mktemp("two")
    profile = write_profile(
        folder, {"slow": ["--ttft-ms", "80", "--itl-ms", "16"], "fast": ["--ttft-ms", "10", "--itl-ms", "4"]}
    )
    return deploytui(folder / "state", "run", profile, "--json", "-"), folder / "state"


def test_the_faster_candidate_wins(two: tuple[Done, Path]) -> None:
    done, _ = two
    assert done.code == 0, done.err
    assert done.result()["decision"]["decision"] == "accept"
    assert done.result()["decision"]["winner"] == "fast"
    assert set(done.result()["decision"]["accepted"]) == {"slow", "fast"}


def test_the_numbers_are_those_of_the_paced_engine(two: tuple[Done, Path]) -> None:
    metrics = two[0].row("slow")["metrics"]
    assert metrics["ttft_ms"]["n"] == 24
    assert metrics["ttft_ms"]["min"] >= 80
    assert metrics["tpot_ms"]["p50"] >= 15.5
    assert metrics["e2e_ms"]["min"] >= 80 + 7 * 16 - 1
    assert metrics["output_tokens"]["max"] == metrics["output_tokens"]["min"] == 8


def test_every_prompt_has_the_asked_number_of_tokens(two: tuple[Done, Path]) -> None:
    for name in ("slow", "fast"):
        tokens = two[0].row(name)["metrics"]["prompt_tokens"]
        assert tokens["min"] == tokens["max"] == 24


def test_prompts_differ_in_every_request_and_are_the_same_for_every_candidate(two: tuple[Done, Path]) -> None:
    prompts = only_session(two[1]) / "prompts"
    texts = [line for part in sorted(prompts.iterdir()) for line in part.read_text().splitlines()]
    assert len(texts) == 2 + 3 * 8
    assert len({text.partition("prompt")[2] for text in texts}) == len(texts)


def test_a_mock_result_is_stamped_everywhere(two: tuple[Done, Path]) -> None:
    done, state = two
    assert "SIMULATED" in done.err
    assert "SIMULATED" in done.result()["stamp"]
    assert all(row["simulated"] for row in done.result()["candidates"])
    for form in ("json", "toml", "text"):
        assert "SIMULATED" in deploytui(state, "export", only_session(state), "--format", form).out


def test_an_unmeasured_number_is_null_with_a_reason(two: tuple[Done, Path]) -> None:
    row = two[0].row("fast")
    assert row["metrics"]["peak_gpu_gib"] is None
    assert "peak_gpu_gib" in row["missing"]
    assert row["metrics"]["ttft_ms"]["p99"] is None


def test_host_memory_is_the_engines(two: tuple[Done, Path]) -> None:
    peak = two[0].row("slow")["metrics"]["peak_host_gib"]
    assert peak is not None
    assert 0.005 < peak < 1


def test_every_phase_is_in_the_journal_and_the_engine_is_gone(two: tuple[Done, Path]) -> None:
    journal = events(two[1])
    phases = [event.phase for event in journal if isinstance(event, PhaseStarted) and event.candidate == "fast"]
    assert phases == ["checking", "launching", "loading", "warming", "measuring", "quality", "stopping", "done"]
    assert [event.survivors for event in journal if isinstance(event, Freed)] == [(), ()]
    assert isinstance(journal[-1], SessionEnded)
    assert journal[-1].exit_status == 0
    assert_nothing_left(only_session(two[1]).name)


def test_the_decision_so_far_is_told_while_it_runs(two: tuple[Done, Path]) -> None:
    decisions = [event.decision for event in events(two[1]) if isinstance(event, Decided)]
    assert not decisions[0].final
    assert "so far" in decisions[0].title
    assert decisions[-1].final


def test_a_repeat_is_referenced_with_the_sum_of_its_bytes(two: tuple[Done, Path]) -> None:
    import hashlib

    from deploytui.record.events import RepeatDone

    folder = only_session(two[1])
    repeats = [event for event in events(two[1]) if isinstance(event, RepeatDone)]
    assert len(repeats) == 6
    for sidecar in (file for event in repeats for file in event.sidecars):
        assert hashlib.sha256((folder / sidecar.path).read_bytes()).hexdigest() == sidecar.sha256


def test_only_the_named_candidate_is_measured(tmp_path: Path) -> None:
    profile = write_profile(tmp_path, {"one": [], "other": []})
    done = deploytui(tmp_path / "state", "run", profile, "--only", "other", "--json", "-")
    assert [row["name"] for row in done.result()["candidates"]] == ["other"]


def test_a_wrong_name_for_only_names_the_nearest(tmp_path: Path) -> None:
    done = deploytui(tmp_path / "state", "run", write_profile(tmp_path, {"alpha": []}), "--only", "alpah")
    assert done.code == 2
    assert "alpha" in done.err
    assert "Traceback" not in done.err


def test_a_saved_session_can_be_measured_again(two: tuple[Done, Path], tmp_path: Path) -> None:
    _, state = two
    saved = tmp_path / "saved.toml"
    assert deploytui(state, "export", only_session(state), "--format", "toml", "-o", saved).code == 0
    again = deploytui(tmp_path / "state", "run", saved, "--json", "-")
    assert again.code == 0, again.err
    assert again.result()["workload"]["draw"] == two[0].result()["workload"]["draw"]
    assert again.result()["workload"]["key"] == two[0].result()["workload"]["key"]
    assert "[[results]]" in saved.read_text(encoding="utf-8")
