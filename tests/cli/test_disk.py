"""A disk that fills up under a session: what was measured is still told, and the engines are gone."""

import json
import sys
from pathlib import Path

from tests.cli.calls import process
from tests.run.sessions import assert_nothing_left, deploytui, only_session, write_profile

LIMIT = """import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Files can't grow beyond this: as a full disk, but only for this process and its children."""


def _limited(size: int) -> tuple[str, ...]:
    return (sys.executable, "-c", LIMIT.format(size))


def test_what_the_journal_can_not_take_is_in_the_result_and_said(tmp_path: Path) -> None:
    profile, state = write_profile(tmp_path, {"one": ["--itl-ms", "1"], "two": []}), tmp_path / "state"
    done = process("run", profile, "--state-dir", state, "--json", "-", wrapper=_limited(12_000))
    assert done.code == 1
    assert done.err.count("could not take a line") == 1
    assert "lacks a part of this" in done.err
    assert "Traceback" not in done.err
    for name in ("one", "two"):
        assert done.row(name)["run"] == "ok"
        assert done.row(name)["metrics"]["ttft_ms"]["n"] == 24
    assert done.result()["decision"]["final"]
    assert_nothing_left(only_session(state).name)
    kept = deploytui(state, "export", only_session(state))
    assert json.loads(kept.out)["session"]["unreadable_lines"] == 0
    assert not json.loads(kept.out)["decision"]["final"]


def test_a_full_disk_is_not_the_candidates_fault(tmp_path: Path) -> None:
    profile, state = write_profile(tmp_path, {"one": [], "two": []}, requests=100), tmp_path / "state"
    done = process("run", profile, "--state-dir", state, "--json", "-", wrapper=_limited(25_000))
    assert done.code == 1
    for name in ("one", "two"):
        assert done.row(name)["run"] == "interrupted"
        assert "Make room" in done.row(name)["failure"]["fix"]
    assert done.result()["decision"]["decision"] == "tune"
    assert done.result()["decision"]["not_covered"] == ["one", "two"]
    assert "Traceback" not in done.err
    assert_nothing_left(only_session(state).name)


def test_a_disk_that_is_full_from_the_start_begins_nothing(tmp_path: Path) -> None:
    profile, state = write_profile(tmp_path, {"one": []}), tmp_path / "state"
    done = process("run", profile, "--state-dir", state, wrapper=_limited(2_000))
    assert done.code == 1
    assert "can't be written" in done.err
    assert "--state-dir" in done.err
    assert list(state.iterdir()) == []
