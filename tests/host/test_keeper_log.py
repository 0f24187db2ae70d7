"""What an engine wrote stays within bounds and says what is missing."""

from pathlib import Path

import pytest

from deploytui.host import keeper_log
from deploytui.host.keeper_log import Log


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_log, "HEAD_BYTES", 4096)
    monkeypatch.setattr(keeper_log, "TAIL_BYTES", 4096)


def new_log(folder: Path) -> Log:
    return Log(str(folder / "engine.log"), str(folder / "engine.tail.log"))


def test_a_short_log_is_in_one_file(tmp_path: Path) -> None:
    new_log(tmp_path).add(b"one\ntwo")
    assert (tmp_path / "engine.log").read_bytes() == b"one\ntwo"
    assert not (tmp_path / "engine.tail.log").exists()


@pytest.mark.usefixtures("small")
def test_no_byte_is_lost_between_the_log_and_its_tail(tmp_path: Path) -> None:
    log, lines = new_log(tmp_path), [b"line %d\n" % number for number in range(500)]
    for line in lines:
        log.add(line)
    head, note = (tmp_path / "engine.log").read_bytes().split(b"[deploytui] ")
    assert note.startswith(b"this log is full")
    assert head + (tmp_path / "engine.tail.log").read_bytes() == b"".join(lines)


@pytest.mark.usefixtures("small")
def test_a_log_without_line_ends_keeps_its_bound(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(100):
        log.add(b"x" * 1000)
        assert (tmp_path / "engine.log").stat().st_size <= 4096
        assert sum(path.stat().st_size for path in tmp_path.glob("engine.tail.log*")) <= 4096
    assert (tmp_path / "engine.log").read_bytes().endswith(b"in its .1\n")


@pytest.mark.usefixtures("small")
def test_a_second_launch_goes_on_within_the_same_bound(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_bytes(b"y" * 2999 + b"\n")
    new_log(tmp_path).add(b"x" * 1200)
    assert (tmp_path / "engine.log").stat().st_size <= 4096
    assert (tmp_path / "engine.tail.log").stat().st_size == 1200


def test_a_gap_is_told_where_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    log = new_log(folder)
    log.add(b"lost\n")
    folder.mkdir()
    log.add(b"kept\n")
    log.add(b"more\n")
    text = (folder / "engine.log").read_text(encoding="utf-8")
    assert text == "\n[deploytui] 5 bytes of output are missing here: they could not be written\nkept\nmore\n"
