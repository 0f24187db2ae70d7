"""Signals, kills and closed doors: what was finished stays, what was started is gone."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from deploytui.record.engine_events import EngineRead
from deploytui.record.events import PhaseStarted, RepeatDone, SessionEnded
from tests.run.sessions import (
    Done,
    assert_nothing_left,
    begin,
    deploytui,
    ended,
    events,
    kill,
    marked,
    only_session,
    wait_for,
    wait_for_event,
    write_profile,
)

SLOW = ["--ttft-ms", "100", "--itl-ms", "20"]
QUICK = ["--ttft-ms", "20", "--itl-ms", "5"]


def _measuring(tmp_path: Path, *args: str) -> tuple[subprocess.Popen[bytes], Path]:
    """A session that has one finished repeat and a long way to go."""
    state = tmp_path / "state"
    process = begin(
        state, "run", write_profile(tmp_path, {"one": [*SLOW, *args], "two": SLOW}, requests=24), "--json", "-"
    )
    wait_for_event(state, RepeatDone)
    return process, state


def test_ctrl_c_once_stops_cleanly_and_keeps_what_is_finished(tmp_path: Path) -> None:
    process, state = _measuring(tmp_path)
    kill(process.pid, signal.SIGINT)
    done = ended(process)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert len(done.row("one")["repeats"]) >= 1
    assert done.row("one")["run"] == "interrupted"
    assert done.row("two")["status"] == "cancelled"
    assert done.result()["decision"]["decision"] != "accept"
    assert_nothing_left(only_session(state).name)


def test_ctrl_c_twice_does_not_wait_for_a_deaf_engine(tmp_path: Path) -> None:
    process, state = _measuring(tmp_path, "--deaf", "--grandchild")
    kill(process.pid, signal.SIGINT)
    wait_for(lambda: _phase(state) == "stopping", "the stop")
    kill(process.pid, signal.SIGINT)
    done = ended(process)
    assert done.code == 130
    stopping = next(event for event in reversed(events(state)) if isinstance(event, PhaseStarted))
    assert stopping.phase == "done"
    assert_nothing_left(only_session(state).name)


def _phase(state: Path) -> str:
    return [event.phase for event in events(state) if isinstance(event, PhaseStarted)][-1]


def test_sigterm_stops_as_ctrl_c_does_and_a_hang_up_does_not(tmp_path: Path) -> None:
    process, state = _measuring(tmp_path)
    kill(process.pid, signal.SIGHUP)
    before = len([event for event in events(state) if isinstance(event, RepeatDone)])
    wait_for(lambda: len([e for e in events(state) if isinstance(e, RepeatDone)]) > before, "one more repeat")
    kill(process.pid, signal.SIGTERM)
    assert ended(process).code == 130
    assert_nothing_left(only_session(state).name)


def test_kill_9_of_the_runner_leaves_no_process_and_no_torn_record(tmp_path: Path) -> None:
    process, state = _measuring(tmp_path, "--deaf", "--grandchild")
    kill(process.pid)
    process.communicate()
    session = only_session(state)
    assert_nothing_left(session.name)
    kept = deploytui(state, "export", session, "--format", "json")
    assert kept.code == 0, kept.err
    assert len(kept.row("one")["repeats"]) >= 1
    assert "died" in deploytui(state, "sessions").out


def test_what_two_kill_9_left_is_ended_by_the_next_start(tmp_path: Path) -> None:
    process, state = _measuring(tmp_path, "--deaf", "--grandchild")
    session = only_session(state).name
    keeper = next(int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _is_keeper(p, session))
    os.kill(keeper, signal.SIGSTOP)
    kill(process.pid)
    os.kill(keeper, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: marked(session), "the grandchild that is left")
    (tmp_path / "next").mkdir()
    after = deploytui(state, "run", write_profile(tmp_path / "next", {"quick": QUICK}))
    assert after.code == 0, after.err
    assert session in after.err
    assert_nothing_left(session)


def _is_keeper(path: Path, session: str) -> bool:
    try:
        marked_so = f"DEPLOYTUI_SESSION={session}".encode() in path.joinpath("environ").read_bytes()
        return marked_so and b"keeper.py" in path.joinpath("cmdline").read_bytes()
    except OSError:
        return False


def test_kill_9_of_an_engine_is_a_failed_run_that_names_the_signal(tmp_path: Path) -> None:
    process, state = _measuring(tmp_path)
    pid = next(event.engine.pid for event in events(state) if isinstance(event, EngineRead) and event.engine.pid)
    kill(pid)
    done = ended(process)
    assert done.row("one")["run"] == "run_failed"
    assert "SIGKILL" in done.row("one")["failure"]["what"]
    assert done.row("two")["run"] == "ok"
    assert_nothing_left(only_session(state).name)


def test_without_telemetry_memory_is_missing_and_the_rest_is_measured(tmp_path: Path) -> None:
    state = tmp_path / "state"
    profile = write_profile(tmp_path, {"one": QUICK, "two": QUICK})
    process = begin(state, "run", profile, "--json", "-")
    wait_for_event(state, PhaseStarted)
    session = only_session(state).name
    for pid in wait_for(lambda: [found for found in marked(session) if _is_sampler(found)], "the telemetry process"):
        kill(pid)
    done = ended(process)
    assert "telemetry process ended" in done.err
    assert done.row("two")["run"] == "ok"
    assert done.row("two")["metrics"]["peak_host_gib"] is None
    assert "peak_host_gib" in done.row("two")["missing"]


def _is_sampler(pid: int) -> bool:
    try:
        return b"deploytui.telemetry.sampler" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_an_unwritable_state_folder_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    done = deploytui(tmp_path / "file" / "state", "run", write_profile(tmp_path, {"one": []}))
    assert done.code == 1
    assert "can't be written" in done.err
    assert "--state-dir" in done.err
    assert "Traceback" not in done.err


def test_a_result_that_could_not_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    profile = write_profile(tmp_path, {"one": []})
    done = deploytui(tmp_path / "state", "run", profile, "--json", tmp_path / "no" / "such" / "folder.json")
    assert done.code == 2
    assert not (tmp_path / "state").exists()


def test_a_detached_runner_outlives_its_starter_and_ends_by_itself(tmp_path: Path) -> None:
    state = tmp_path / "state"
    done = deploytui(state, "run", write_profile(tmp_path, {"one": QUICK}), "--detach")
    assert done.code == 0, done.err
    assert done.out.startswith("ready ")
    session = Path(done.out.removeprefix("ready ").strip())
    assert session == only_session(state)
    assert wait_for_event(state, SessionEnded).exit_status == 0
    assert_nothing_left(session.name)


def test_a_detached_start_that_is_refused_says_why(tmp_path: Path) -> None:
    done: Done = deploytui(tmp_path / "state", "run", tmp_path / "absent.toml", "--detach")
    assert done.code == 2
    assert "absent.toml" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("word", ["cancel", "kill"])
def test_words_over_the_socket_stop_a_session(tmp_path: Path, word: str) -> None:
    from deploytui.session.control import Word, ask_now
    from deploytui.session.folder import SessionFolder

    process, state = _measuring(tmp_path)
    spoken: Word = "cancel" if word == "cancel" else "kill"
    assert ask_now(SessionFolder(only_session(state)), spoken).ok
    assert ended(process).code == 130
    assert_nothing_left(only_session(state).name)


def test_a_skipped_candidate_makes_room_for_the_next(tmp_path: Path) -> None:
    from deploytui.session.control import ask_now
    from deploytui.session.folder import SessionFolder

    process, state = _measuring(tmp_path)
    assert ask_now(SessionFolder(only_session(state)), "skip", "one").ok
    done = ended(process)
    assert done.row("one")["run"] == "interrupted"
    assert done.row("two")["run"] == "ok"
    assert done.code == 0
    assert "one" in done.result()["decision"]["not_covered"]
