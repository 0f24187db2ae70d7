"""What a script reads: exit statuses, results in files, and only the candidates that were asked for."""

import json
import os
import re
import threading
from pathlib import Path

import pytest

from tests.run.sessions import assert_nothing_left, deploytui, only_session, write_profile

GATE = "max_ttft_ms = { p50 = 60000 }"
NO_GATES = re.compile(r"\[gates\]\n(?:[^\[]+\n)+")


@pytest.mark.parametrize(
    ("decision", "code", "exit_zero"), [("tune", 3, False), ("reject", 4, False), ("reject", 4, True)]
)
def test_the_decision_is_the_exit_status_unless_that_is_not_wanted(
    tmp_path: Path, decision: str, code: int, exit_zero: bool
) -> None:
    profile, result = (
        write_profile(tmp_path, {"one": ["--ttft-ms", "50", "--itl-ms", "2"]}, requests=4),
        tmp_path / "result.json",
    )
    text = profile.read_text(encoding="utf-8")
    changed = NO_GATES.sub("", text) if decision == "tune" else text.replace(GATE, "max_ttft_ms = { p50 = 1 }")
    assert changed != text
    profile.write_text(changed, encoding="utf-8")
    done = deploytui(tmp_path / "state", "run", profile, "--json", result, *(["--exit-zero"] if exit_zero else []))
    found = json.loads(result.read_text(encoding="utf-8"))["decision"]
    assert found["decision"] == decision, done.err
    assert found["reasons"][0]["code"] == ("nothing_asked" if decision == "tune" else "ttft_over_max")
    assert done.code == (0 if exit_zero else code)
    assert done.out == ""


def test_a_failure_of_the_run_is_none_of_the_decisions(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    profile = write_profile(tmp_path, {"one": []})
    assert deploytui(tmp_path / "file" / "state", "run", profile, "--exit-zero").code == 1
    assert deploytui(tmp_path / "state", "run", profile, "--only", "none", "--exit-zero").code == 2


def test_several_candidates_are_picked_in_the_order_of_the_profile(tmp_path: Path) -> None:
    state, profile = tmp_path / "state", write_profile(tmp_path, {"a": [], "b": [], "c": []}, requests=1)
    text = profile.read_text(encoding="utf-8")
    profile.write_text(text.replace('name = "case"', 'name = "case"\nbaseline = "b"', 1), encoding="utf-8")
    picked = ("--only", "c", "--only", "a", "--only", "c")
    done = deploytui(state, "run", profile, *picked, "--json", "-")
    assert [(row["name"], row["run"]) for row in done.result()["candidates"]] == [("a", "ok"), ("c", "ok")]
    assert done.result()["session"]["left_out"] == ["b"]
    assert done.result()["decision"]["fallback"] != "b"
    assert_nothing_left(only_session(state).name)


def test_a_detached_run_refuses_what_it_would_not_write(tmp_path: Path) -> None:
    done = deploytui(tmp_path / "state", "run", write_profile(tmp_path, {"one": []}), "--detach", "--json", "x.json")
    assert done.code == 2
    assert "deploytui export SESSION -o x.json" in done.err
    assert not (tmp_path / "state").exists()


def test_a_result_goes_into_a_pipe_that_waits_for_it(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    done = deploytui(tmp_path / "state", "run", write_profile(tmp_path, {"one": []}, requests=2), "--json", pipe)
    reader.join(10)
    assert json.loads(got[0])["candidates"][0]["run"] == "ok", done.err
