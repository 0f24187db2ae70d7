"""What was prepared before: used again only where the same would come out, and only as it was left."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from deploytui.record.engine_events import PreparationDone
from tests.run.model_files import MODEL, profile, row
from tests.run.sessions import Done, deploytui, events

SCRIPT = "import os, shutil, sys; shutil.copy(sys.argv[1], sys.argv[2]); print(os.environ.get('WAY'))"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEPLOYTUI_CACHE", str(tmp_path / "cache"))
    (tmp_path / "m.gguf").write_bytes(MODEL)
    (tmp_path / "convert.py").write_text(SCRIPT)
    return tmp_path / "cache" / "models" / "prepared"


def converted(folder: Path, *more: str) -> str:
    command = json.dumps([sys.executable, str(folder / "convert.py"), "{model}", "{out}/made.gguf"])
    return "\n".join((f'prepare = {{ command = {command}, format = "gguf" }}', *more))


def run(folder: Path, state: str, *rows: str) -> Done:
    return deploytui(folder / state, "run", profile(folder, *rows), "--trust", "--json", "-")


def reused(folder: Path, state: str) -> list[bool]:
    return [event.preparation.reused for event in events(folder / state) if isinstance(event, PreparationDone)]


def test_another_variable_or_another_script_makes_another_model(tmp_path: Path) -> None:
    plain = row(tmp_path, "plain", "m.gguf", converted(tmp_path, 'env = { WAY = "1" }'))
    other = row(tmp_path, "other", "m.gguf", converted(tmp_path, 'env = { WAY = "2" }'))
    again = row(tmp_path, "again", "m.gguf", converted(tmp_path, 'env = { WAY = "1" }'))
    run(tmp_path, "one", plain, other, again)
    assert reused(tmp_path, "one") == [False, False, True]
    (tmp_path / "convert.py").write_text(SCRIPT + "\n# better")
    run(tmp_path, "two", plain)
    assert reused(tmp_path, "two") == [False]


def test_a_model_that_is_there_needs_no_lock(tmp_path: Path, cache: Path) -> None:
    wanted = row(tmp_path, "a", "m.gguf", converted(tmp_path))
    assert run(tmp_path, "one", wanted).row("a")["artifact"]["checksum"] == "full"
    (lock,) = cache.glob(".*.lock")
    lock.unlink()
    lock.mkdir()
    again = run(tmp_path, "two", wanted)
    assert again.row("a")["run"] == "ok", again.err
    assert again.row("a")["artifact"]["checksum"] == "full"
    assert reused(tmp_path, "two") == [True]


def test_a_model_that_was_changed_after_it_was_made_is_found_out(tmp_path: Path, cache: Path) -> None:
    wanted = row(tmp_path, "a", "m.gguf", converted(tmp_path))
    run(tmp_path, "one", wanted)
    (made,) = cache.glob("*/out/made.gguf")
    made.write_bytes(MODEL[:-1] + b"x")
    assert run(tmp_path, "two", wanted).row("a")["failure"]["kind"] == "checksum_mismatch"


def test_the_source_is_held_to_the_checksum_that_is_named(tmp_path: Path) -> None:
    pinned = row(tmp_path, "a", "m.gguf", converted(tmp_path, f'sha256 = {{ "m.gguf" = "{"0" * 64}" }}'))
    assert run(tmp_path, "one", pinned).row("a")["failure"]["kind"] == "checksum_mismatch"
    assert reused(tmp_path, "one") == []
    assert run(tmp_path, "two", pinned).row("a")["status"] == "load_failed"
    right = hashlib.sha256(MODEL).hexdigest()
    fine = row(tmp_path, "a", "m.gguf", converted(tmp_path, f'sha256 = {{ "m.gguf" = "{right}" }}'))
    assert run(tmp_path, "three", fine).row("a")["run"] == "ok"


def test_links_to_what_is_gone_are_no_model(tmp_path: Path) -> None:
    (tmp_path / "convert.py").write_text(
        "import os, shutil, sys, tempfile; made = os.path.join(tempfile.mkdtemp(), 'x');"
        "shutil.copy(sys.argv[1], made); os.symlink(made, sys.argv[2])"
    )
    failure = run(tmp_path, "one", row(tmp_path, "a", "m.gguf", converted(tmp_path))).row("a")["failure"]
    assert failure["kind"] == "prepare_failed"
    assert "whole files" in failure["fix"]
