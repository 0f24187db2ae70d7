"""Following files: the journal and an engine's log."""

from pathlib import Path

from deploytui.record.events import AnyEvent, SessionEnded, encode
from deploytui.session.folder import SessionFolder
from deploytui.session.lock import SessionLock
from deploytui.tui.feed import LOOKS_PER_PULSE, Feed
from deploytui.tui.logs import FIRST_LOOK, LogTail
from tests.tui.facts import at
from tests.tui.states import finished_events, measuring_events


def session(tmp_path: Path, events: list[AnyEvent]) -> SessionFolder:
    folder = SessionFolder(tmp_path / "session")
    folder.path.mkdir()
    write(folder, events)
    return folder


def write(folder: SessionFolder, events: list[AnyEvent]) -> None:
    with folder.journal.open("ab") as file:
        file.write(b"".join(map(encode, events)))


def test_nothing_is_said_when_nothing_is_new(tmp_path: Path) -> None:
    folder = session(tmp_path, measuring_events())
    with SessionLock.acquire(folder):
        feed = Feed(folder)
        first = feed.advance()
        assert first is not None
        assert first.source == "running"
        assert len(first.state.candidates) == 4
        assert [feed.advance() for _ in range(2 * LOOKS_PER_PULSE)] == [None] * 2 * LOOKS_PER_PULSE


def test_what_is_written_is_seen_with_the_next_look(tmp_path: Path) -> None:
    whole = measuring_events()
    folder = session(tmp_path, whole[:20])
    with SessionLock.acquire(folder):
        feed = Feed(folder)
        feed.advance()
        write(folder, whole[20:])
        seen = feed.advance()
        assert seen is not None
        assert seen.state.candidates["vllm-fp8"].phase == "measuring"


def test_an_ended_session_is_ended_and_asks_for_no_runner(tmp_path: Path) -> None:
    seen = Feed(session(tmp_path, finished_events())).advance()
    assert seen is not None
    assert seen.source == "ended"


def test_a_runner_that_is_gone_without_an_end_is_noticed(tmp_path: Path) -> None:
    folder = session(tmp_path, measuring_events())
    lock = SessionLock.acquire(folder)
    feed = Feed(folder)
    assert feed.advance() is not None
    lock.release()
    looks = [seen for _ in range(LOOKS_PER_PULSE + 1) if (seen := feed.advance()) is not None]
    assert [seen.source for seen in looks] == ["died"]


def test_an_end_written_just_before_the_lock_went_is_no_death(tmp_path: Path) -> None:
    folder = session(tmp_path, [*measuring_events(), SessionEnded(at_ns=at(170), exit_status=0)])
    feed = Feed(folder)
    assert feed._without_runner() == "ended"


def test_broken_lines_are_counted_not_fatal(tmp_path: Path) -> None:
    folder = session(tmp_path, measuring_events())
    with folder.journal.open("ab") as file:
        file.write(b'{"kind":"of tomorrow","at_ns":1}\nno json\n')
    seen = Feed(folder).advance()
    assert seen is not None
    assert seen.unreadable == 2


def test_a_log_is_followed_as_it_grows(tmp_path: Path) -> None:
    log, tail = tmp_path / "engine.log", LogTail(tmp_path)
    assert not tail.read()
    log.write_bytes(b"one\ntw")
    assert tail.read()
    assert tail.text() == ["one", "tw"]
    with log.open("ab") as file:
        file.write(b"o\nthree \xff\n")
    assert tail.read()
    assert tail.text() == ["one", "two", "three \ufffd"]
    assert not tail.read()


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_bytes(b"".join(b"line %06d\n" % n for n in range(20_000)))
    tail = LogTail(tmp_path)
    assert tail.read()
    assert tail.text()[0] == "… earlier lines are in the file"
    assert tail.text()[-1] == "line 019999"
    assert len(tail.text()) < FIRST_LOOK / 10


def test_an_outgrown_log_goes_on_in_its_tail(tmp_path: Path) -> None:
    tail = LogTail(tmp_path)
    (tmp_path / "engine.log").write_bytes(b"start\n")
    (tmp_path / "engine.tail.log").write_bytes(b"")
    tail.read()
    (tmp_path / "engine.tail.log").write_bytes(b"end\n")
    assert tail.read()
    assert tail.text() == ["end"]


def test_before_an_engine_is_started_the_last_preparation_is_followed(tmp_path: Path) -> None:
    tail = LogTail(tmp_path)
    for number in (0, 1):
        (tmp_path / f"prepare.{number}").mkdir()
        (tmp_path / f"prepare.{number}" / "engine.log").write_bytes(b"step %d\n" % number)
        assert tail.read()
        assert tail.text() == [f"step {number}"]
    (tmp_path / "engine.log").write_bytes(b"loading\n")
    assert tail.read()
    assert tail.text() == ["loading"]
