import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploytui.errors import SessionError
from deploytui.record.events import decoder, encode
from deploytui.session.journal import Journal, JournalFullError
from tests.session.support import note

LIMITED = """
import resource, signal, sys
from pathlib import Path
from deploytui.errors import SessionError
from deploytui.session.journal import Journal, JournalFullError
from tests.session.support import note
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
journal, _ = Journal.open(path)
journal.append(note("first"))
whole = path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, resource.RLIM_INFINITY))
for text in ("second", "third"):
    try:
        journal.append(note(text))
        print("written?")
    except JournalFullError as error:
        print(bool(journal.broken), error.why)
    assert path.read_bytes() == whole
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append(note("fourth"))
journal.sync()
assert not journal.broken
"""


def opened(path: Path) -> Journal:
    return Journal.open(path)[0]


def texts(path: Path) -> list[str]:
    return [getattr(event, "text", "?") for event in decoder.decode_lines(path.read_bytes())]


def test_each_event_is_a_line_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with opened(path) as journal:
        for number in range(3):
            journal.append(note(str(number)))
            assert texts(path) == [str(one) for one in range(number + 1)]
        journal.sync()


def test_a_torn_tail_is_cut_off_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole, torn = encode(note("kept")), encode(note("lost"))
    for length in range(len(torn)):
        path.write_bytes(whole + torn[:length])
        journal, cut = Journal.open(path)
        with journal:
            assert cut == length
            journal.append(note("next"))
        assert texts(path) == ["kept", "next"]


def test_a_torn_tail_longer_than_a_block_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(encode(note("kept")) + b"x" * 200_000)
    assert Journal.open(path)[1] == 200_000
    assert texts(path) == ["kept"]


def test_a_journal_without_a_whole_line_starts_empty(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"kind":"no')
    journal, cut = Journal.open(path)
    journal.close()
    assert (cut, path.read_bytes()) == (11, b"")


def test_a_full_disk_leaves_whole_lines_and_recovers(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["True only 20 of {} bytes of a line fitted".format(len(encode(note("second")))), lines[1]]
    assert lines[1].startswith("True ")
    assert texts(path) == ["first", "fourth"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_device_without_room_is_said(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl", os.open("/dev/full", os.O_WRONLY), 0)
    with journal, pytest.raises(JournalFullError, match="could not take a line") as caught:
        journal.append(note("x"))
    assert "No space left" in caught.value.why
    assert "No space left" in journal.broken


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with opened(path) as journal:
        journal.append(note("mine"))
        with pytest.raises(SessionError, match="Another process writes"):
            Journal.open(path)
    with opened(path) as journal:
        journal.append(note("next"))
    assert texts(path) == ["mine", "next"]


def test_a_journal_in_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="can't be written"):
        Journal.open(tmp_path / "none" / "journal.jsonl")


def test_a_number_that_json_cannot_hold_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    from deploytui.record.events import Progress

    with opened(path) as journal, pytest.raises(ValueError, match="can't be written"):
        journal.append(Progress(at_ns=1, candidate="a", done=float("nan")))
    assert path.read_bytes() == b""
