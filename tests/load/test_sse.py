"""The event reader: line ends, comments, caps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.sse import EVENT_CAP, Event, EventReader
from tests.load.replay import cut


def events_of(*reads: bytes) -> list[bytes]:
    reader = EventReader()
    return [event.data for data in reads for event in reader.feed(data)]


LINE = st.binary(max_size=12).map(lambda raw: raw.replace(b"\r", b"").replace(b"\n", b""))


@given(
    payloads=st.lists(LINE.filter(bool), min_size=1, max_size=6),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    space=st.sampled_from([b"", b" "]),
    extra=st.sampled_from([b"", b": ping", b":", b"event: message", b"id: 7", b"retry: 10", b"unknown: x"]),
    data=st.data(),
)
def test_every_line_end_in_every_packing_gives_the_same_events(
    payloads: list[bytes], end: bytes, space: bytes, extra: bytes, data: st.DataObject
) -> None:
    before = extra + end if extra else b""
    content = b"".join(before + b"data:" + space + b"x" + payload + end + end for payload in payloads)
    reads = cut(content, data.draw(st.lists(st.integers(1, len(content) - 1))))
    assert events_of(*reads) == [b"x" + payload for payload in payloads]


@given(kinds=st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=8, max_size=8))
def test_line_ends_may_be_mixed(kinds: list[bytes]) -> None:
    lines = [b"data: a", b"", b": ping", b"data: b", b"data: c", b"", b"data: d", b""]
    content = b"".join(line + end for line, end in zip(lines, kinds, strict=True))
    assert events_of(content) == events_of(*(content[at : at + 1] for at in range(len(content))))


def test_an_event_is_given_with_the_read_that_ends_it_also_when_cr_ends_lines() -> None:
    assert events_of(b"data: a\r\r") == [b"a"]
    assert events_of(b"data: a\r\n\r") == [b"a"]


def test_a_crlf_cut_by_a_read_boundary_is_one_line_end() -> None:
    assert events_of(b"data: a\r", b"\ndata: b\r", b"\n", b"\r", b"\n") == [b"a\nb"]


def test_several_data_lines_are_joined_by_lf() -> None:
    assert events_of(b"data: {\ndata:  1}\n\n") == [b"{\n 1}"]


def test_exactly_one_space_behind_the_colon_is_taken_off() -> None:
    assert events_of(b"data:  a\n\ndata:a\n\ndata: a\n\n") == [b" a", b"a", b"a"]


def test_a_bare_data_line_is_passed_over() -> None:
    assert events_of(b"data:\n\ndata\n\ndata: a\n\n\n\n") == [b"a"]


def test_comments_are_no_events_but_a_sign_of_life() -> None:
    reader = EventReader()
    assert reader.feed(b":\n\n: ping\n\n: PROCESSING\ndata: a\n: x\n\n") == [Event(b"a")]
    assert reader.comments == 4


def test_the_name_of_an_event_is_kept_for_that_event_only() -> None:
    reader = EventReader()
    assert reader.feed(b"event: error\ndata: a\n\ndata: b\n\n") == [Event(b"a", b"error"), Event(b"b")]


def test_a_byte_order_mark_at_the_start_is_passed_over() -> None:
    assert events_of(b"\xef\xbb\xbfdata: a\n\n") == [b"a"]


def test_the_event_whose_end_never_came_can_be_asked_for() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\n\ndata: b\ndata: c") == [Event(b"a")]
    assert reader.unterminated() == Event(b"b\nc")
    assert reader.unterminated() is None


def test_a_long_line_below_the_cap_is_one_event() -> None:
    payload = b"x" * (300 << 10)
    content = b"data: " + payload + b"\n\n"
    assert events_of(*(content[at : at + 1400] for at in range(0, len(content), 1400))) == [payload]


@pytest.mark.parametrize("step", [1 << 16, 1 << 20, 64 << 20])
def test_a_line_beyond_the_cap_is_given_up_with_bounded_memory(step: int) -> None:
    reader = EventReader()
    begin = b"data: ok\n\ndata: "
    assert reader.feed(begin) == [Event(b"ok")]
    for _ in range(0, 64 << 20, step):
        assert reader.feed(b"x" * step) == []
    assert reader.too_long
    assert len(reader._tail) == 0
    assert reader.feed(b"\n\ndata: later\n\n") == []
    assert reader.unterminated() is None


def test_an_event_of_endless_data_lines_is_given_up() -> None:
    reader = EventReader()
    for _ in range(EVENT_CAP // (1 << 16) + 1):
        reader.feed(b"data: " + b"x" * (1 << 16) + b"\n")
    assert reader.too_long
