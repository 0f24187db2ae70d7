import os
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from deploytui.errors import SessionError
from deploytui.session.folder import find_session, new_session, safe_name, session_ids, state_dir
from tests.session.support import NOW, made

ODD_NAMES = [
    "org/model",
    "org_model",
    "a/b_c",
    "a_b/c",
    "../../x",
    "/etc/passwd",
    "m:Q4",
    "m_Q4",
    "x" * 300,
    "x" * 301,
    "con",
    ".hidden",
    "",
    " ",
    unicodedata.normalize("NFC", "größe"),
    unicodedata.normalize("NFD", "größe"),
    "a\0b",
    "a\nb",
    "\udc80",
]


def test_distinct_names_become_distinct_safe_file_names() -> None:
    names = [safe_name(text) for text in ODD_NAMES]
    assert len(set(names)) == len(ODD_NAMES)
    for name in names:
        assert 0 < len(os.fsencode(name)) <= 80
        assert not name.startswith(".")
        assert "/" not in name
        assert name.isascii()
        assert name.isprintable()


def test_a_plain_name_stays_itself() -> None:
    assert safe_name("vllm-bf16_v1.2") == "vllm-bf16_v1.2"


def test_a_candidate_folder_lies_inside_the_session(tmp_path: Path) -> None:
    folder = made(tmp_path)
    for text in ODD_NAMES:
        assert folder.candidate_dir(text).parent == folder.path / "candidates"


def test_a_session_id_tells_time_and_name(tmp_path: Path) -> None:
    folder = made(tmp_path, "Qwen chat/../1")
    assert folder.id.startswith("20261130-130501-Qwen_chat_1-")
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert list(folder.path.iterdir()) == []


def test_two_sessions_of_one_second_are_two_folders(tmp_path: Path) -> None:
    assert len({made(tmp_path).id for _ in range(20)}) == 20


def test_an_unwritable_state_folder_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SessionError, match="can't be written") as caught:
        new_session(tmp_path / "file" / "sessions", "x", NOW)
    assert "--state-dir" in caught.value.fix


def test_a_full_disk_is_refused_before_anything_starts(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys; from pathlib import Path; from tests.session.support import NOW\n"
        "from deploytui.session.folder import new_session; from deploytui.errors import SessionError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try: new_session(Path(sys.argv[1]), 'x', NOW)\n"
        "except SessionError as error: print(error.what)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "s")], capture_output=True, text=True, check=True, timeout=60
    )
    assert "can't be written" in done.stdout
    assert list((tmp_path / "s").iterdir()) == []


def test_the_state_folder_follows_xdg_and_the_override(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_dir() == tmp_path / "deploytui" / "sessions"
    assert state_dir(tmp_path / "other") == tmp_path / "other"


def test_a_session_is_found_by_id_beginning_and_path(tmp_path: Path) -> None:
    folder, state = made(tmp_path), tmp_path / "state"
    folder.journal.touch()
    for text in (folder.id, folder.id[:12], str(folder.path), str(folder.journal)):
        assert find_session(text, state) == folder
    assert session_ids(state) == [folder.id]


def test_an_unknown_session_names_the_nearest(tmp_path: Path) -> None:
    folder = made(tmp_path)
    folder.journal.touch()
    with pytest.raises(SessionError) as caught:
        find_session(folder.id.replace("qwen", "quen"), tmp_path / "state")
    assert folder.id in caught.value.fix


def test_a_beginning_of_two_ids_lists_both(tmp_path: Path) -> None:
    both = [made(tmp_path), made(tmp_path)]
    for folder in both:
        folder.journal.touch()
    with pytest.raises(SessionError) as caught:
        find_session("2026", tmp_path / "state")
    assert all(folder.id in caught.value.why for folder in both)


def test_no_state_folder_means_no_session(tmp_path: Path) -> None:
    assert session_ids(tmp_path / "none") == []
    with pytest.raises(SessionError, match="There is no session"):
        find_session("", tmp_path / "none")
