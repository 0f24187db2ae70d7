"""An engine whose main process is killed in mid-measurement: a failed run, and nothing of it is left."""

import subprocess
from pathlib import Path

from deploytui.record.engine_events import EngineRead, Freed
from deploytui.record.events import PhaseStarted
from tests.run.sessions import assert_nothing_left, begin, ended, events, kill, only_session, wait_for, write_profile

FAMILY = ["--deaf", "--grandchild", "--daemon", "--itl-ms", "100"]


def test_a_killed_engine_leaves_none_of_its_processes_and_takes_no_others(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with subprocess.Popen(("sleep", "3600")) as namesake:  # the mock's grandchildren are called the same
        process = begin(state, "run", write_profile(tmp_path, {"one": FAMILY}), "--json", "-")
        wait_for(
            lambda: any(isinstance(event, PhaseStarted) and event.phase == "measuring" for event in events(state)),
            "measuring",
        )
        engine = [event.engine for event in events(state) if isinstance(event, EngineRead)][-1]
        assert engine.pid is not None
        kill(engine.pid)
        done = ended(process)
        assert namesake.poll() is None
        namesake.kill()
    row = done.row("one")
    assert (row["status"], row["run"], row["failure"]["kind"]) == ("load_success", "run_failed", "crashed")
    (freed,) = (event for event in events(state) if isinstance(event, Freed))
    assert (freed.survivors, freed.survivor_names) == ((), ())
    assert_nothing_left(only_session(state).name)
