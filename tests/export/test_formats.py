"""Exports by name, of session folders and of saved profiles."""

import json
import tomllib
from pathlib import Path

import pytest

from deploytui.errors import ProfileError, SessionError, UsageError
from deploytui.export.formats import FORMATS, export_text
from deploytui.export.saved import save_session
from tests.export.parts import PROFILE, WITH_MOCK
from tests.export.sessions import session_folder


def test_a_session_comes_out_in_every_format(tmp_path: Path) -> None:
    folder = session_folder(tmp_path)
    assert set(FORMATS) == {"json", "toml", "text"}
    assert json.loads(export_text(folder, "json"))["schema"] == "deploytui.result/1"
    assert tomllib.loads(export_text(folder, "toml").decode())["results"]
    assert "ACCEPT" in export_text(folder.path, "text").decode()


def test_a_saved_profile_exports_as_the_session_did(tmp_path: Path) -> None:
    folder = session_folder(tmp_path)
    saved = save_session(folder, tmp_path / "saved.toml")
    assert export_text(saved, "text") == export_text(folder, "text")
    assert export_text(saved, "toml") == export_text(folder, "toml")
    one, two = json.loads(export_text(saved, "json")), json.loads(export_text(folder, "json"))
    assert one["decision"] == two["decision"]
    assert [row["metrics"] for row in one["candidates"]] == [row["metrics"] for row in two["candidates"]]
    assert one["session"] == two["session"]


@pytest.mark.parametrize("format_name", sorted(FORMATS))
def test_every_file_of_a_simulated_session_says_so(tmp_path: Path, format_name: str) -> None:
    folder = session_folder(tmp_path, text=WITH_MOCK, mock=True)
    assert b"SIMULATED" in export_text(folder, format_name)


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        export_text(tmp_path, "jsn")
    assert 'Did you mean "json"?' in caught.value.fix


def test_a_profile_that_was_not_run_has_nothing_to_export(tmp_path: Path) -> None:
    plain = tmp_path / "plain.toml"
    plain.write_text(PROFILE, encoding="utf-8")
    with pytest.raises(ProfileError, match="no results"):
        export_text(plain, "json")


def test_a_folder_that_is_no_session_is_told(tmp_path: Path) -> None:
    with pytest.raises(SessionError):
        export_text(tmp_path, "json")
