from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploytui.errors import SessionError
from deploytui.record.events import AnyEvent, encode
from deploytui.session.journal import Journal
from deploytui.session.tail import JournalTail, load_state
from tests.session.support import ended, note, started


def texts(events: list[AnyEvent]) -> list[str]:
    return [getattr(event, "text", "?") for event in events]


def test_a_journal_that_is_not_there_yet_is_just_quiet(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    tail = JournalTail(path)
    assert tail.read() == []
    path.write_bytes(encode(note("a")))
    assert texts(tail.read()) == ["a"]
    assert tail.read() == []


def test_a_line_is_seen_only_when_it_is_whole(tmp_path: Path) -> None:
    path, line = tmp_path / "journal.jsonl", encode(note("whole"))
    tail = JournalTail(path)
    for length in range(len(line)):
        path.write_bytes(line[:length])
        assert tail.read() == []
    path.write_bytes(line)
    assert texts(tail.read()) == ["whole"]


def test_a_torn_tail_cut_by_the_next_runner_loses_nothing(tmp_path: Path) -> None:
    path, torn = tmp_path / "journal.jsonl", encode(note("never finished"))[:-9]
    tail = JournalTail(path)
    path.write_bytes(encode(note("a")) + torn)
    assert texts(tail.read()) == ["a"]
    journal, cut = Journal.open(path)
    assert cut == len(torn)
    with journal:
        assert tail.read() == []
        journal.append(note("a line that is much longer than what was torn off before it came"))
        journal.append(note("c"))
    assert len(tail.read()) == 2
    assert tail.reader.unreadable == 0


def test_a_journal_that_shrank_is_followed_from_its_new_end(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    tail = JournalTail(path)
    path.write_bytes(encode(note("a")) + encode(note("b")))
    assert len(tail.read()) == 2
    path.write_bytes(encode(note("a")))
    assert tail.read() == []
    with path.open("ab") as file:
        file.write(encode(note("c")))
    assert texts(tail.read()) == ["c"]


def test_unknown_and_broken_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(encode(note("a")) + b'{"kind":"future","at_ns":1}\n\xff\n' + encode(note("b")))
    tail = JournalTail(path)
    assert texts(tail.read()) == ["a", "b"]
    assert tail.reader.unreadable == 2


def test_a_long_journal_comes_in_looks_of_bounded_size(tmp_path: Path) -> None:
    path, line = tmp_path / "journal.jsonl", encode(note("x" * 10_000))
    count = 2000
    path.write_bytes(line * count)
    tail, seen = JournalTail(path), []
    while events := tail.read():
        seen.append(len(events))
    assert sum(seen) == count
    assert len(seen) > 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.integers(0, 400), max_size=12))
def test_any_packing_of_the_same_bytes_gives_the_same_events(tmp_path: Path, cuts: list[int]) -> None:
    path, content = tmp_path / "journal.jsonl", b"".join(encode(note(str(number))) for number in range(8))
    path.write_bytes(b"")
    tail, seen = JournalTail(path), list[AnyEvent]()
    places = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    for begin, end in pairwise(places):
        with path.open("ab") as file:
            file.write(content[begin:end])
        seen += tail.read()
    assert texts(seen) == [str(number) for number in range(8)]


def test_the_whole_fold_tells_what_was_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(encode(started()) + b"rubbish\n" + encode(ended()) + b'{"torn')
    state, reader = load_state(path)
    assert state.started is not None
    assert state.ended is not None
    assert (reader.unreadable, reader.tail) == (1, b'{"torn')


def test_a_journal_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="can't be read"):
        load_state(tmp_path / "none")
    with pytest.raises(SessionError, match="can't be read"):
        JournalTail(tmp_path).read()
