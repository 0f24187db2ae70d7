"""Where output goes: pipes that close, disks that are full, terminals and locales that lack signs."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deploytui.record.keys import StepKey
from tests.cli.calls import process
from tests.export.bulk import Asked, bulk_session
from tests.run.sessions import LIMIT_S, write_profile

PLAIN = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
OLD = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
SIMULATED = "SIMULATED: one, two: no engine was measured, the numbers mean nothing.\n"
DEPLOYTUI = f"{shlex.quote(sys.executable)} -m deploytui"


def _shell(line: str) -> tuple[int, str, str]:
    """Exit status, output and errors of a shell line."""
    done = subprocess.run(
        ["bash", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    "words",
    [
        "export {0} --format json",
        "export {0} --format text",
        "export {0} --format stamps",
        "export {0} --format requests",
        "sessions --state-dir {1}",
    ],
)
@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_reader_that_goes_away_is_no_error_text(finished: Path, words: str, reader: str) -> None:
    code, out, err = _shell(f"{DEPLOYTUI} {words.format(finished, finished.parent)} | {reader}")
    assert (code, err.replace(SIMULATED, "")) == (0, "")
    assert len(out.splitlines()) == (reader != "true")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_in_the_middle_is_no_error_text(tmp_path: Path, unbuffered: str) -> None:
    requests = [Asked(number, "kernel", range(50)) for number in range(4_000)]
    folder = bulk_session(tmp_path, {StepKey("a", repeat=0): [requests]})
    for form in ("stamps", "stamps-bin", "requests"):
        command = f"PYTHONUNBUFFERED={unbuffered} {DEPLOYTUI} export {folder.path} --format {form}"
        code, out, err = _shell(f"{command} | head -c 8; exit ${{PIPESTATUS[0]}}")
        assert (code, err, len(out)) == (1, "", 8)


@pytest.mark.parametrize(
    "words",
    [
        "export {0}",
        "export {0} --format stamps",
        "export {0} --format requests",
        "sessions --state-dir {1}",
        "check {0}/../../case.toml",
        "doctor",
    ],
)
def test_a_full_disk_behind_standard_output_is_said(finished: Path, words: str) -> None:
    code, _, err = _shell(f"{DEPLOYTUI} {words.format(finished, finished.parent)} > /dev/full")
    assert code == 1
    assert "Standard output can't be written." in err
    assert "No space left" in err
    assert "Traceback" not in err


def test_a_closed_standard_output_is_said(finished: Path) -> None:
    code, _, err = _shell(f"{DEPLOYTUI} export {finished} >&-")
    assert code == 1
    assert err.startswith("deploytui: Standard output is closed.")


@pytest.mark.parametrize("where", ["2>&-", "2> >(true)"])
def test_nobody_reading_the_progress_costs_no_result(tmp_path: Path, where: str) -> None:
    profile, result = write_profile(tmp_path, {"one": []}, requests=2), tmp_path / "result.json"
    code, _, _ = _shell(f"{DEPLOYTUI} run {profile} --state-dir {tmp_path / 'state'} --json {result} {where}")
    assert json.loads(result.read_text(encoding="utf-8"))["candidates"][0]["run"] == "ok"
    assert code in (0, 3)


def test_a_result_that_nobody_takes_is_an_exit_of_1_after_the_table(tmp_path: Path) -> None:
    profile = write_profile(tmp_path, {"one": []}, requests=2)
    code, _, err = _shell(f"{DEPLOYTUI} run {profile} --state-dir {tmp_path / 'state'} --json - > /dev/full")
    assert code == 1
    assert "verdict" in err
    assert "Standard output can't be written." in err
    assert "Traceback" not in err


@pytest.mark.parametrize("env", [PLAIN, OLD])
@pytest.mark.parametrize("command", ["export", "sessions", "check", "doctor", "wrong"])
def test_a_locale_without_the_signs_gets_plain_ones(finished: Path, env: dict[str, str], command: str) -> None:
    words = {
        "export": ("export", finished, "--format", "text"),
        "sessions": ("sessions", "--state-dir", finished.parent),
        "check": ("check", finished.parent.parent / "case.toml"),
        "doctor": ("doctor",),
        "wrong": ("run", finished.parent.parent / "case.toml", "--only", "x", "--state-dir", finished.parent),
    }[command]
    done = process(*words, env=env)
    assert done.code == (2 if command == "wrong" else 0)
    assert "Traceback" not in done.err
    assert "\\u" not in done.out + done.err
    assert "\\x" not in done.out or env is OLD
    assert (done.out + done.err).isascii()


def test_a_run_in_a_plain_locale_shows_and_writes_everything(tmp_path: Path) -> None:
    profile, result = write_profile(tmp_path, {"größe 漢字": []}, requests=2), tmp_path / "résultat.json"
    done = process("run", profile, "--state-dir", tmp_path / "state", "--json", result, env=PLAIN)
    assert "Traceback" not in done.err
    assert "UnicodeEncodeError" not in done.err
    (row,) = json.loads(result.read_bytes().decode("utf-8"))["candidates"]
    assert (row["name"], row["run"]) == ("größe 漢字", "ok")
    assert r"\u6f22\u5b57" in done.err
    assert done.code in (0, 3)


@pytest.mark.parametrize("command", ["run", "check", "export"])
def test_a_path_that_is_no_text_is_named_all_the_same(command: str) -> None:
    argv = [os.fsencode(sys.executable), b"-m", b"deploytui", command.encode(), b"caf\xe9.toml"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 2
    assert b"There is no profile caf\\udce9.toml." in done.stderr


def test_json_stays_json_in_a_plain_locale() -> None:
    done = process("doctor", "--json", env=PLAIN)
    assert json.loads(done.out)["engines"]
