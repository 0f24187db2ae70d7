"""Profiles on disk."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploytui.errors import DeployError, ProfileError
from deploytui.profile.files import edit_profile, list_profiles, read_profile, save_text
from deploytui.profile.inert import not_acted_on
from deploytui.profile.places import base_dir_of, demo_path

GOOD = """# which one for the chat?
name = "chat"  # shown on top

[workload]
prompt_tokens = 16   # short
requests = 8

[[candidates]]
name = "a.b"
engine = "mock"
args = ["--x",
  "1"]  # two lines

[[candidates]]
engine = "mock"
name = "b"
settings = { threads = 2 }
"""


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: what a full disk does to a write."""
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old_handler)


def test_a_saved_text_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    save_text(path, GOOD)
    assert read_profile(path).name == "chat"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_fills_up_costs_nothing_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    save_text(path, GOOD)
    with files_up_to(100), pytest.raises(DeployError, match="could not be saved"):
        save_text(path, GOOD * 2)
    assert path.read_text(encoding="utf-8") == GOOD
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DeployError) as caught:
        save_text(tmp_path / "none" / "p.toml", GOOD)
    assert "No such file" in caught.value.why


def test_saving_keeps_the_mode_and_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text(GOOD, encoding="utf-8")
    real.chmod(0o600)
    link = tmp_path / "link.toml"
    link.symlink_to(real)
    save_text(link, GOOD + "# more\n")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8").endswith("# more\n")
    assert real.stat().st_mode & 0o777 == 0o600


def test_saving_to_a_device_or_a_pipe_writes_into_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save_text(pipe, "hello")
    assert os.read(reader, 100) == b"hello"
    os.close(reader)
    assert pipe.is_fifo()
    save_text("/dev/null", "hello")
    assert Path("/dev/null").is_char_device()


def test_saving_onto_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="could not be saved"):
        save_text(tmp_path, "hello")


def test_the_embedded_example_is_a_profile_that_can_be_run() -> None:
    profile = read_profile(demo_path())
    assert not_acted_on(profile) == ()
    assert base_dir_of(profile, demo_path()) == demo_path().parent


def test_relative_paths_of_a_saved_session_are_those_it_ran_with(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    path = tmp_path / "saved.toml"
    path.write_text(GOOD + f'[session]\nbase_dir = "{tmp_path / "work"}"\n', encoding="utf-8")
    assert base_dir_of(read_profile(path), path) == tmp_path / "work"
    (tmp_path / "work").rmdir()
    assert base_dir_of(read_profile(path), path) == tmp_path


def test_what_can_not_be_read_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "M\xfcller"\n')
    cases = [
        (tmp_path / "none.toml", "There is no profile"),
        (tmp_path, "is a folder"),
        (tmp_path / "latin.toml", "is not UTF-8: byte 9"),
        (tmp_path / "latin.toml" / "x", "can't be read"),
        (Path("a\x00b"), "can't be read"),
    ]
    for path, words in cases:
        with pytest.raises(ProfileError) as caught:
            read_profile(path)
        assert words in caught.value.what
        assert caught.value.fix


def test_an_edit_keeps_comments_order_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    profile = edit_profile(
        path,
        {
            "workload.requests": 20,
            "candidates[b].settings.threads": 4,
            "candidates[a.b].settings.max_model_len": 512,
            "candidates[0].args": None,
            "gates.min_quality": 0.5,
        },
    )
    assert profile.workload.requests == 20
    assert profile.candidates[1].settings.threads == 4
    assert profile.candidates[0].settings.max_model_len == 512
    assert profile.candidates[0].args == ()
    assert profile.gates.min_quality == 0.5
    text = path.read_bytes().decode()
    assert "# which one for the chat?\r\n" in text
    assert "prompt_tokens = 16   # short\r\n" in text
    assert text.index('engine = "mock"\r\nname = "b"') > 0
    assert read_profile(path) == profile


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload.requests": "many"}, "must be an integer"),
        ({"workload.reqests": 3}, "is not a known key"),
        ({"candidates[c].engine": "mock"}, "has no `candidates[c].engine`"),
        ({"workload..requests": 3}, "has no place"),
        ({"": 3}, "has no place"),
    ],
)
def test_an_edit_that_would_break_the_profile_changes_nothing(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        edit_profile(path, changes)
    assert words in caught.value.what
    assert path.read_text(encoding="utf-8") == GOOD


def test_taking_out_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(GOOD, encoding="utf-8")
    edit_profile(path, {"gates.max_ttft_ms.p95": None})
    assert path.read_text(encoding="utf-8") == GOOD


def test_broken_profiles_are_listed_as_broken(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "a.toml").write_text("name = ", encoding="utf-8")
    (tmp_path / "c.toml").write_text('schema = 99\nname = "later"\n[[results]]\nx = 1\n', encoding="utf-8")
    (tmp_path / "d.toml").write_text(GOOD + "[[results]]\nx = 1\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    rows = list_profiles(tmp_path)
    assert [(row.path.name, row.name, row.saved) for row in rows] == [
        ("a.toml", None, False),
        ("b.toml", "chat", False),
        ("c.toml", "later", True),
        ("d.toml", "chat", True),
    ]
    assert "line 1" in (rows[0].fault or "")
    assert "newer deploytui" in (rows[2].fault or "")
    assert rows[1].fault is None


def test_no_folder_lists_nothing(tmp_path: Path) -> None:
    assert list_profiles(tmp_path / "none") == []
