"""Preparations: made once, found again, cleaned up after, and understood when they fail."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from deploytui.record.engine_events import PreparationDone
from deploytui.record.events import PhaseStarted
from tests.cli.calls import process
from tests.run.model_files import MODEL, profile, row
from tests.run.sessions import Done, begin, deploytui, ended, events, wait_for

COPY = "import shutil, sys; open({runs!r}, 'a').write('x'); print('made'); shutil.copy(sys.argv[1], sys.argv[2])"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path / "cache"))
    (tmp_path / "m.gguf").write_bytes(MODEL)
    return tmp_path / "cache" / "models" / "prepared"


def by(code: str, *words: str) -> str:
    """The lines of a candidate that is prepared by a piece of Python."""
    command = json.dumps([sys.executable, "-c", code, *words])
    return f'prepare = {{ command = {command}, format = "gguf" }}'


def copied(folder: Path) -> str:
    """A preparation that copies its source, and counts how often it ran."""
    return by(COPY.format(runs=str(folder / "runs")), "{model}", "{out}/copy.gguf")


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


def run(folder: Path, state: str, path: Path) -> Done:
    return deploytui(folder / state, "run", path, "--trust", "--json", "-")


def done(folder: Path, state: str) -> list[PreparationDone]:
    return [event for event in events(folder / state) if isinstance(event, PreparationDone)]


def left(cache: Path) -> list[str]:
    """What lies in the cache beside finished models and locks."""
    return [path.name for path in cache.iterdir() if path.name.startswith(".work")] if cache.is_dir() else []


def test_a_model_is_made_once_and_the_second_run_says_what_it_took(tmp_path: Path, cache: Path) -> None:
    path = profile(
        tmp_path, row(tmp_path, "a", "m.gguf", copied(tmp_path)), row(tmp_path, "b", "m.gguf", copied(tmp_path))
    )
    first = run(tmp_path, "one", path)
    assert first.row("a")["status"] == "load_success", first.err
    made, again = (event.preparation for event in done(tmp_path, "one"))
    assert (made.reused, again.reused, runs(tmp_path)) == (False, True, 1)
    assert made.seconds
    assert again.seconds == made.seconds
    assert list(made.output_sha256) == ["copy.gguf"]
    assert first.row("a")["artifact"]["path"].endswith("copy.gguf")
    assert first.row("a")["cold_start"]["prepare_s"] == first.row("b")["cold_start"]["prepare_s"] == made.seconds
    run(tmp_path, "two", path)
    assert [event.preparation.reused for event in done(tmp_path, "two")] == [True, True]
    assert runs(tmp_path) == 1
    assert left(cache) == []
    (tmp_path / "m.gguf").write_bytes(MODEL + bytes(32))
    run(tmp_path, "three", path)
    assert runs(tmp_path) == 2


def test_a_build_that_took_too_long_is_rejected_also_when_it_is_found_done(tmp_path: Path) -> None:
    path = profile(tmp_path, row(tmp_path, "a", "m.gguf", copied(tmp_path)), gates="max_prepare_s = 0.000001")
    for state in ("one", "two"):
        codes = {reason["code"] for reason in run(tmp_path, state, path).row("a")["verdict"]["reasons"]}
        assert "prepare_over_max" in codes


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("print('cannot convert this'); raise SystemExit(3)", "prepare_failed", "cannot convert this"),
        ("raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')", "oom", "CUDA out of memory"),
        ("pass", "prepare_failed", "is empty"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "prepare_failed", ""),
    ],
)
def test_a_preparation_that_fails_is_the_candidates_failure(
    tmp_path: Path, cache: Path, code: str, kind: str, words: str
) -> None:
    ended = run(tmp_path, "state", profile(tmp_path, row(tmp_path, "a", "m.gguf", by(code, "{out}"))))
    failure = ended.row("a")["failure"]
    assert failure["kind"] == kind
    assert words in failure["why"]
    assert left(cache) == []


def test_a_preparation_has_a_time_limit_of_its_own(tmp_path: Path, cache: Path) -> None:
    slow = by("import time; time.sleep(600)", "{out}")
    path = profile(tmp_path, row(tmp_path, "a", "m.gguf", slow))
    path.write_text(path.read_text().replace("timeouts = {", "timeouts = { prepare = 1,"))
    failure = run(tmp_path, "state", path).row("a")["failure"]
    assert failure["kind"] == "timeout"
    assert "timeouts.prepare" in failure["fix"]
    assert left(cache) == []


def test_an_interrupted_preparation_leaves_no_process_and_no_folder(tmp_path: Path, cache: Path) -> None:
    started = tmp_path / "started"
    code = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    path = profile(tmp_path, row(tmp_path, "a", "m.gguf", by(code, "{out}")))
    process = begin(tmp_path / "state", "run", path, "--trust")
    pid = int(wait_for(lambda: started.read_text() if started.is_file() else None, "the preparation"))
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert left(cache) == []


def test_two_sessions_at_once_make_it_once(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    code = (
        COPY.format(runs=str(tmp_path / "runs"))
        + f"; import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.05)"
    )
    path = profile(tmp_path, row(tmp_path, "a", "m.gguf", by(code, "{model}", "{out}/copy.gguf")))
    first = begin(tmp_path / "one", "run", path, "--trust")
    wait_for((tmp_path / "runs").is_file, "the first preparation")
    second = begin(tmp_path / "two", "run", path, "--trust")
    wait_for(
        lambda: any(isinstance(e, PhaseStarted) and e.phase == "preparing" for e in events(tmp_path / "two")),
        "the second session",
    )
    gate.touch()
    ended(first)
    ended(second)
    assert sorted(event.preparation.reused for state in ("one", "two") for event in done(tmp_path, state)) == [
        False,
        True,
    ]
    assert runs(tmp_path) == 1


def test_a_program_that_is_not_there_is_said_before_anything_runs(tmp_path: Path) -> None:
    lines = 'prepare = { command = ["no-such-converter", "{model}", "{out}"], format = "gguf" }'
    ended = process("check", "--trust", profile(tmp_path, row(tmp_path, "a", "m.gguf", lines)))
    assert "not_installed: a needs gguf by command prepared, and no-such-converter can't be run." in ended.out
