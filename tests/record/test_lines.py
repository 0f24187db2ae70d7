"""Reading a journal that is being written, was torn, or holds what nobody knows."""

from hypothesis import given
from hypothesis import strategies as st

from deploytui.record.events import Note, encode
from deploytui.record.lines import LineReader
from tests.record.strategies import EVENT_LISTS


def notes(*texts: str) -> bytes:
    return b"".join(encode(Note(at_ns=place, level="info", text=text)) for place, text in enumerate(texts))


def read(reader: LineReader, *blocks: bytes) -> list[str]:
    return [event.text for block in blocks for event in reader.feed(block) if isinstance(event, Note)]


@given(EVENT_LISTS, st.data())
def test_every_split_of_a_journal_gives_the_same_events(events: list[Note], data: st.DataObject) -> None:
    content = b"".join(encode(event) for event in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    reader = LineReader()
    found = [
        event
        for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True)
        for event in reader.feed(content[start:end])
    ]
    assert found == events
    assert (reader.tail, reader.unreadable) == (b"", 0)


def test_every_single_split_of_a_journal_with_wide_characters_is_read_whole() -> None:
    content = notes("é", "漢字", "😀\n")
    for cut in range(len(content) + 1):
        assert read(LineReader(), content[:cut], content[cut:]) == ["é", "漢字", "😀\n"]


def test_a_torn_tail_waits_for_its_rest() -> None:
    content = notes("one", "two")
    reader = LineReader()
    assert read(reader, content[:-9]) == ["one"]
    assert reader.tail
    assert read(reader, content[-9:]) == ["two"]
    assert reader.unreadable == 0


def test_broken_and_unknown_lines_are_counted_and_passed_over() -> None:
    reader = LineReader()
    garbage = b'{"kind":"from_the_future","at_ns":1}\n{"kind":"note"\n\xff\xfe\n\n'
    assert read(reader, notes("one") + garbage + notes("two")) == ["one", "two"]
    assert reader.unreadable == 3
    assert "from_the_future" in reader.samples[0]


def test_samples_of_broken_lines_stay_few_and_short() -> None:
    reader = LineReader()
    read(reader, (b"x" * 1000 + b"\n") * 50)
    assert reader.unreadable == 50
    assert len(reader.samples) == 5
    assert all(len(sample) <= 200 for sample in reader.samples)


@given(st.binary(max_size=300))
def test_no_bytes_at_all_stop_the_reader(content: bytes) -> None:
    reader = LineReader()
    assert reader.feed(content + b"\n" + notes("after"))[-1:] == [Note(at_ns=0, level="info", text="after")]
