"""The result JSON of a session folder."""

from pathlib import Path

import msgspec
import pytest

from deploytui.errors import SessionError
from deploytui.export.result import json_bytes, result, session_parts
from deploytui.record.events import StatusSet
from deploytui.record.fold import fold, fold_all
from deploytui.session.folder import SessionFolder
from tests.export.parts import profile
from tests.export.sessions import session_folder, unhappy_candidates, whole_state
from tests.export.strict import strict


def result_json(folder: SessionFolder) -> bytes:
    asked, state, unreadable = session_parts(folder)
    return json_bytes(result(asked, state, session_id=folder.id, unreadable_lines=unreadable))


def test_a_session_folder_gives_strict_json(tmp_path: Path) -> None:
    folder = session_folder(tmp_path)
    with folder.journal.open("ab") as journal:
        journal.write(b'{"kind": "unheard_of", "at_ns": 1}\n{"kind": "torn')
    data = strict(result_json(folder))
    assert data["session"]["id"] == folder.id
    assert data["session"]["unreadable_lines"] == 1
    assert data["decision"]["winner"] == "fast"
    assert data["candidates"][0]["metrics"]["output_tok_s"] == 1000 / 7


def test_a_folder_without_a_journal_or_profile_is_an_error_to_act_on(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="no profile"):
        result_json(SessionFolder(tmp_path))
    folder = session_folder(tmp_path)
    folder.journal.unlink()
    with pytest.raises(SessionError, match="journal"):
        result_json(folder)


def test_the_result_reads_back_as_plain_json_with_msgspec_too() -> None:
    state = fold_all(unhappy_candidates(), whole_state())
    data = json_bytes(result(profile(), state))
    assert msgspec.json.decode(data) == strict(data)


def test_a_broken_character_does_not_break_the_file() -> None:
    state = fold(whole_state(), StatusSet(at_ns=50, candidate="fast", status="load_success"))
    candidate = msgspec.structs.replace(state.candidates["fast"], artifact_label="\ud800 odd")
    odd = msgspec.structs.replace(state, candidates={"fast": candidate})
    assert strict(json_bytes(result(profile(), odd)))["candidates"][0]["artifact"]["label"] == "? odd"
