"""Sessions in environments as they are found: names that are no UTF-8, secrets that are ordinary words."""

import os
from pathlib import Path

import pytest

from deploytui.record.events import RunSet
from tests.run.sessions import deploytui, events, write_profile


def test_a_variable_that_is_no_utf8_and_a_key_that_is_a_candidates_name_end_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", os.fsdecode(b"caf\xe9"))
    monkeypatch.setenv("ODD_TOKEN", os.fsdecode(b"swordfish-caf\xe9"))
    monkeypatch.setenv("LOCAL_API_KEY", "llamacpp")
    path = write_profile(tmp_path, {"llamacpp-q4": []}, requests=2)
    done = deploytui(tmp_path / "state", "run", path)
    assert "Traceback" not in done.err
    ended = [event for event in events(tmp_path / "state") if isinstance(event, RunSet)]
    assert [(event.candidate, event.run) for event in ended] == [("llamacpp-q4", "ok")]
