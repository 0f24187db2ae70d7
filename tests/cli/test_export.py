"""Results out of sessions: finished, running, broken, and into places that don't exist."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from deploytui.record.events import Decided
from tests.cli.calls import Call, assert_told
from tests.run.sessions import (
    assert_nothing_left,
    begin,
    ended,
    kill,
    only_session,
    wait_for_event,
    write_profile,
)

GARBAGE = [b"garbage", b"\xff\xfe{", b'{"kind":"from_the_future","x":1}', b'{"kind":"repeat_done"}']


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A finished session that may be broken."""
    return Path(shutil.copytree(finished, tmp_path / "state" / finished.name))


@pytest.mark.parametrize(
    ("form", "said"),
    [("jsn", 'Did you mean "json"?'), ("yaml", "json, toml, text"), ("stamp", 'Did you mean "stamps"?')],
)
def test_an_unknown_format_names_those_there_are(call: Call, finished: Path, form: str, said: str) -> None:
    assert_told(call("export", finished, "--format", form), 2, said)


def test_every_request_and_stamp_of_a_real_run_comes_out(call: Call, finished: Path, tmp_path: Path) -> None:
    requests = [json.loads(line) for line in call("export", finished, "--format", "requests").out.splitlines()]
    assert {row["candidate"] for row in requests} == {"one", "two"}
    assert {row["step"] for row in requests} == {"l0.p0.r0", "l0.p0.r1", "l0.p0.r2", "l0.p0.t-task.jsonl"}
    table = tmp_path / "stamps.csv"
    assert call("export", finished, "--format", "stamps", "-o", table).code == 0
    head, *rows = table.read_text(encoding="utf-8").splitlines()
    assert head == "candidate,step,request_id,k,t_ns,clock"
    assert len(rows) == sum(1 + row["chunks"] for row in requests)
    sent = {f"{row['candidate']},{row['step']},{row['id']},-1,{row['sent_ns']},user" for row in requests}
    assert sent <= set(rows)


def test_a_raw_export_without_one_of_its_files_is_an_exit_of_1(call: Call, copied: Path, tmp_path: Path) -> None:
    (copied / "candidates" / "one" / "l0.p0.r1.stamps.w0.bin").unlink()
    done = call("export", copied, "--format", "stamps", "-o", tmp_path / "stamps.csv")
    assert_told(done, 1, "l0.p0.r1.stamps.w0.bin", "left out", "SIMULATED")
    assert "two,l0.p0.r2," in (tmp_path / "stamps.csv").read_text(encoding="utf-8")


def test_a_session_is_found_by_the_beginning_of_its_id_and_by_its_journal(call: Call, finished: Path) -> None:
    whole = call("export", finished, "--format", "text").out
    assert "SIMULATED" in whole
    assert call("export", finished.name[:-2], "--state-dir", finished.parent, "--format", "text").out == whole
    assert call("export", finished / "journal.jsonl", "--format", "text").out == whole


def test_a_file_is_replaced_whole(call: Call, finished: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_text("old" * 100_000, encoding="utf-8")
    assert call("export", finished, "-o", target).code == 0
    assert json.loads(target.read_text(encoding="utf-8"))["schema"] == "deploytui.result/1"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_folder_that_does_not_exist_is_said_and_not_made(call: Call, finished: Path, tmp_path: Path) -> None:
    assert_told(call("export", finished, "-o", tmp_path / "no" / "result.json"), 2, "can't be written", "Name another")
    assert_told(call("export", finished, "-o", tmp_path), 2, "can't be written")
    assert list(tmp_path.iterdir()) == []


def test_a_profile_is_never_written_over_with_its_own_results(call: Call, finished: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.toml"
    assert call("export", finished, "--format", "toml", "-o", saved).code == 0
    before = saved.read_bytes()
    assert_told(call("export", saved, "-o", saved), 2, "is the profile itself")
    assert_told(call("run", saved, "--json", saved, "--state-dir", tmp_path / "state"), 2, "is the profile itself")
    assert saved.read_bytes() == before


def test_a_profile_without_results_says_what_to_do(call: Call, finished: Path) -> None:
    assert_told(call("export", finished / "profile.toml"), 2, "holds no results", "Run it")


def test_saved_results_that_do_not_fit_are_told_with_their_place(call: Call, finished: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.toml"
    text = call("export", finished, "--format", "toml").out
    saved.write_text(text.replace("\nn = 12\n", '\nn = "twelve"\n'), encoding="utf-8")
    assert saved.read_text(encoding="utf-8") != text
    assert_told(call("export", saved, "--format", "text"), 2, "results[0] does not fit", "Save the session again")
    assert call("check", saved).code == 0


def test_a_running_session_can_be_exported_as_far_as_it_is(call: Call, tmp_path: Path) -> None:
    state = tmp_path / "state"
    slow = ["--ttft-ms", "50", "--itl-ms", "10"]
    running = begin(state, "run", write_profile(tmp_path, {"one": slow, "two": slow}, requests=16))
    wait_for_event(state, Decided)
    result = json.loads(call("export", only_session(state)).out)
    assert "running" in call("sessions", "--state-dir", state).out
    assert "so far" in call("export", only_session(state), "--format", "text").out
    kill(running.pid, signal.SIGINT)
    assert ended(running).code == 130
    assert (result["session"]["finished"], result["decision"]["final"]) == (False, False)
    assert len(result["candidates"][0]["repeats"]) >= 1
    assert result["candidates"][1]["status"] is None
    assert_nothing_left(only_session(state).name)


def test_broken_lines_of_a_journal_are_counted_and_shown_and_the_rest_is_kept(call: Call, copied: Path) -> None:
    journal = copied / "journal.jsonl"
    lines = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n".join([*lines[:5], *GARBAGE, *lines[5:]])[:-20])
    result = json.loads(call("export", copied).out)
    assert result["session"]["unreadable_lines"] == len(GARBAGE)
    assert [len(row["repeats"]) for row in result["candidates"]] == [3, 3]
    said = f"{len(GARBAGE)} lines of the journal could not be read"
    assert said in call("export", copied, "--format", "text").out
    saved = copied.parent / "saved.toml"
    assert call("export", copied, "--format", "toml", "-o", saved).code == 0
    assert said in call("export", saved, "--format", "text").out
    assert "died" in call("sessions", "--state-dir", copied.parent).out


@pytest.mark.parametrize("content", [b"", b"\n\n\n", bytes(range(256)) * 999, b"[" * 50_000])
def test_a_journal_of_nothing_is_a_session_of_nothing(call: Call, copied: Path, content: bytes) -> None:
    (copied / "journal.jsonl").write_bytes(content)
    done = call("export", copied)
    assert done.code == 0
    assert json.loads(done.out)["decision"]["decision"] is None
    assert "No decision yet." in call("export", copied, "--format", "text").out
    assert copied.name in call("sessions", "--state-dir", copied.parent).out


@pytest.mark.parametrize("name", ["journal.jsonl", "profile.toml"])
def test_a_session_that_lacks_a_file_is_listed_and_says_which(call: Call, copied: Path, name: str) -> None:
    (copied / name).unlink()
    done = call("export", copied)
    assert_told(done, 1, name)
    assert copied.name in call("sessions", "--state-dir", copied.parent).out


def test_no_sessions_is_no_error_and_says_how_to_begin(call: Call, tmp_path: Path) -> None:
    for state in (tmp_path, tmp_path / "absent"):
        done = call("sessions", "--state-dir", state)
        assert (done.code, "deploytui demo" in done.out) == (0, True)
        assert_told(call("attach", "--state-dir", state), 2, "no session yet", "deploytui demo")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("sessions",), ("attach",), ("attach", "x"), ("export", "x")])
def test_a_state_folder_that_can_not_be_read_is_not_an_empty_one(
    call: Call, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    assert_told(call(*words, "--state-dir", tmp_path / "file"), 1, "can't be read", "--state-dir")
