"""The journal's lines."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given

from deploytui.record.events import AnyEvent, Note, Progress, Rollup, decoder, encode
from deploytui.record.facts import Band
from tests.record.strategies import EVENTS


@given(EVENTS)
def test_every_event_reads_back_as_it_was_written(event: AnyEvent) -> None:
    line = encode(event)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decoder.decode(line) == event


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_writer_refuses_what_json_can_not_hold(bad: float) -> None:
    events: list[Any] = [
        Progress(at_ns=1, candidate="a", done=bad),
        Rollup(at_ns=1, candidate="a", interval_s=1.0, output_tok_s=Band(0.0, bad, 1.0)),
    ]
    for event in events:
        with pytest.raises(ValueError, match="can't be written"):
            encode(event)


def test_a_line_names_its_kind_and_leaves_out_what_is_absent() -> None:
    line = encode(Note(at_ns=7, level="info", text="hello"))
    assert msgspec.json.decode(line) == {"kind": "note", "at_ns": 7, "level": "info", "text": "hello"}


def test_newlines_in_foreign_text_stay_inside_their_line() -> None:
    line = encode(Note(at_ns=1, level="error", text="one\ntwo\r\n\x00three"))
    assert line.count(b"\n") == 1
    note = decoder.decode(line)
    assert isinstance(note, Note)
    assert note.text == "one\ntwo\r\n\x00three"


def test_a_field_a_later_version_added_is_no_obstacle() -> None:
    assert decoder.decode(b'{"kind":"note","at_ns":1,"level":"info","text":"x","colour":"red"}').at_ns == 1
