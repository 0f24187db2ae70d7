"""Engines that fail in every way: each says why, none takes the session with it, none is left behind."""

from pathlib import Path

import pytest

from deploytui.record.engine_events import Freed
from deploytui.record.events import Note
from tests.run.sessions import Done, assert_nothing_left, deploytui, events, only_session, write_profile

RUDE = {
    "good": ["--ttft-ms", "20", "--itl-ms", "5"],
    "oom": ["--oom"],
    "at-load": ["--fail-load", "couldn't bind HTTP server socket, hostname: 127.0.0.1"],
    "never": ["--never-ready"],
    "dies": ["--crash-after-requests", "24"],
    "mid-stream": ["--crash-after", "5"],
    "refuses": ["--fail-every", "1"],
    "stutters": ["--fail-every", "3", "--fail-status", "500"],
    "busy": ["--fail-every", "12", "--fail-status", "429"],
    "cut": ["--cut-after", "4"],
    "error": ["--error-after", "4"],
    "talks": ["--log-mb", "50"],
    "family": ["--deaf", "--grandchild", "--daemon"],
}


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """One session of all of them."""
    folder = tmp_path_factory.mktemp("rude")
    done = deploytui(folder / "state", "run", write_profile(folder, RUDE, load=3), "--json", "-", timeout_s=280)
    return done, folder / "state"


def test_losers_do_not_stop_the_race(race: tuple[Done, Path]) -> None:
    done, _ = race
    assert "Traceback" not in done.err
    assert len(done.result()["candidates"]) == len(RUDE)
    assert done.row("good")["verdict"]["decision"] == "accept"
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("name", "status", "kind", "words"),
    [
        ("oom", "load_failed", "oom", "CUDA out of memory. Tried to allocate 20.00 GiB"),
        ("at-load", "load_failed", "port_in_use", "couldn't bind HTTP server socket"),
        ("never", "load_failed", "timeout", ""),
    ],
)
def test_a_failed_load_has_its_kind_and_the_engines_words(
    race: tuple[Done, Path], name: str, status: str, kind: str, words: str
) -> None:
    row = race[0].row(name)
    assert row["status"] == status
    assert row["run"] is None
    assert row["failure"]["kind"] == kind
    assert words in row["failure"]["why"]
    assert row["failure"]["fix"]


@pytest.mark.parametrize("name", ["dies", "mid-stream"])
def test_a_death_under_load_is_a_failed_run_of_a_loaded_engine(race: tuple[Done, Path], name: str) -> None:
    row = race[0].row(name)
    assert (row["status"], row["run"]) == ("load_success", "run_failed")
    assert row["failure"]["kind"] == "crashed"
    assert row["verdict"]["decision"] == "reject"


def test_repeats_before_a_death_are_kept(race: tuple[Done, Path]) -> None:
    assert len(race[0].row("dies")["repeats"]) == 2


@pytest.mark.parametrize(("name", "error"), [("cut", "truncated"), ("error", "stream_error")])
def test_broken_answers_are_failures_not_fast_successes(race: tuple[Done, Path], name: str, error: str) -> None:
    row = race[0].row(name)
    assert row["run"] == "run_failed"
    assert row["metrics"]["success_rate"]["value"] == 0.0
    assert row["metrics"]["ttft_ms"]["p50"] is None
    assert error in str(row["repeats"])


def test_an_engine_that_refuses_its_first_answer_never_was_ready(race: tuple[Done, Path]) -> None:
    row = race[0].row("refuses")
    assert (row["status"], row["failure"]["kind"]) == ("load_failed", "request_rejected")


def test_a_share_of_refused_requests_is_a_reject_with_its_share(race: tuple[Done, Path]) -> None:
    row = race[0].row("stutters")
    assert row["run"] == "ok"
    assert 0.5 < row["metrics"]["success_rate"]["value"] < 0.8
    assert "success_rate_low" in [reason["code"] for reason in row["verdict"]["reasons"]]


def test_an_engine_with_too_much_to_do_is_asked_again_and_that_is_said(race: tuple[Done, Path]) -> None:
    row = race[0].row("busy")
    assert row["metrics"]["success_rate"]["value"] == 1.0
    notes = [event.text for event in events(race[1]) if isinstance(event, Note)]
    assert any(text.startswith("busy: repeat") and "a 429" in text for text in notes)


def test_fifty_megabytes_of_log_are_drained_and_capped(race: tuple[Done, Path]) -> None:
    assert race[0].row("talks")["run"] == "ok"
    logs = sum(path.stat().st_size for path in only_session(race[1]).rglob("talks/engine*.log*"))
    assert logs <= (16 + 8 + 1) << 20


def test_a_deaf_engine_with_a_grandchild_and_a_daemon_is_ended(race: tuple[Done, Path]) -> None:
    assert race[0].row("family")["run"] == "ok"
    freed = [event for event in events(race[1]) if isinstance(event, Freed)]
    assert all(event.survivors == () for event in freed)
    assert_nothing_left(only_session(race[1]).name)
