"""Where relative paths of a profile start."""

from datetime import UTC, datetime
from pathlib import Path

from deploytui.profile.parse import parse_profile
from deploytui.record.events import SessionStarted, encode
from deploytui.session.folder import new_session
from deploytui.session.origin import origin
from deploytui.session.trust import fingerprint, trust, trusted

TEXT = '[workload]\nprompt_tokens = 8\n[[candidates]]\nname = "a"\nengine = "mock"\n'


def test_the_copy_in_a_session_still_means_the_folder_it_was_copied_from(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    folder = new_session(tmp_path / "state", "x", datetime.now(UTC))
    folder.profile.write_text(TEXT, encoding="utf-8")
    folder.journal.write_bytes(encode(_started(str(home))))
    assert origin(parse_profile(TEXT), folder.profile) == home


def test_a_journal_that_tells_nothing_leaves_the_files_own_folder(tmp_path: Path) -> None:
    folder = new_session(tmp_path / "state", "x", datetime.now(UTC))
    folder.profile.write_text(TEXT, encoding="utf-8")
    folder.journal.write_bytes(b"garbage\n")
    assert origin(parse_profile(TEXT), folder.profile) == folder.path
    assert origin(parse_profile(TEXT), tmp_path / "plain.toml") == tmp_path


def test_only_the_very_text_is_trusted(tmp_path: Path) -> None:
    trust(tmp_path, fingerprint(TEXT))
    assert trusted(tmp_path, fingerprint(TEXT))
    assert not trusted(tmp_path, fingerprint(TEXT + " "))


def _started(base_dir: str) -> SessionStarted:
    return SessionStarted(
        at_ns=1,
        session="s",
        name="x",
        schema=1,
        tool_version="0",
        definitions=1,
        wall_s=0.0,
        boot_id=None,
        hostname="h",
        pid=1,
        base_dir=base_dir,
        profile_sha256="",
        baseline=None,
    )
