"""Recorded traces of requests."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.errors import ProfileError
from deploytui.plan.trace import Trace, parse_trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""


def mooncake(*lines: Any) -> Trace:
    """The trace of these lines; a text goes in as it is, a number is a time."""
    rows = [
        {"timestamp": line, "input_length": 9, "output_length": 3} if isinstance(line, int) else line for line in lines
    ]
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    return parse_trace("t.jsonl", text.encode())


def test_a_mooncake_trace_gives_times_and_lengths() -> None:
    found = mooncake(
        {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]},
        {"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": [46]},
    )
    assert list(found.times_s) == pytest.approx([0, 3.053])
    assert list(found.prompt_tokens) == [6955, 6472]
    assert list(found.output_tokens) == [52, 26]
    assert found.has_hashes


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_azure_trace_is_read_as_csv(end: str) -> None:
    found = parse_trace("a.csv", AZURE.replace("\n", end).encode())
    assert list(found.times_s) == pytest.approx([0, 4.314579])
    assert list(found.prompt_tokens) == [374, 396]
    assert not found.has_hashes


def test_an_azure_trace_is_read_as_jsonl() -> None:
    rows = [
        {"TIMESTAMP": "2024-05-10 00:00:00.009930+00:00", "ContextTokens": 2162, "GeneratedTokens": 5},
        {"TIMESTAMP": "2024-05-10T00:00:01.009930Z", "ContextTokens": 2399, "GeneratedTokens": 6.0},
    ]
    found = mooncake(*rows)
    assert list(found.times_s) == pytest.approx([0, 1])
    assert list(found.output_tokens) == [5, 6]


def test_a_trace_may_be_of_times_alone() -> None:
    assert mooncake({"timestamp": 5}, 6).lengthless_line == 1
    assert mooncake(5, {"timestamp": 6}).lengthless_line == 2
    assert mooncake(5).lengthless_line is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is no object"),
        (3, "line 2: its time is 0.002 s before that of the line before"),
        ({"input_length": 5, "output_length": 1}, "line 2 has no time"),
        ({"timestamp": "7", "input_length": 5, "output_length": 1}, "line 2: timestamp is '7'"),
        ({"timestamp": 7, "input_length": -5, "output_length": 1}, "line 2: input_length is -5"),
        ({"timestamp": 7, "input_length": 5, "output_length": 0}, "line 2: output_length is 0"),
        ({"timestamp": 7, "input_length": 5}, "line 2: output_length is missing"),
        ({"timestamp": 7, "input_length": 5.5, "output_length": 1}, "line 2: input_length is 5.5"),
        ({"timestamp": 7, "input_length": 1 << 40, "output_length": 1}, "longer than any context"),
        ({"TIMESTAMP": "noon", "ContextTokens": 1, "GeneratedTokens": 1}, "line 2: TIMESTAMP is 'noon'"),
    ],
)
def test_a_broken_line_is_named_with_what_is_wrong(line: Any, words: str) -> None:
    with pytest.raises(ProfileError) as caught:
        mooncake(5, line)
    assert words in caught.value.what
    assert caught.value.fix


def test_csv_with_a_cell_missing_names_its_line() -> None:
    with pytest.raises(ProfileError, match="line 4 has 2 cells"):
        parse_trace("a.csv", (AZURE + "2023-11-16 18:16:00,5\n").encode())


@pytest.mark.parametrize("content", [b"", b"\n\n", b"TIMESTAMP,ContextTokens,GeneratedTokens\n"])
def test_an_empty_trace_is_refused(content: bytes) -> None:
    with pytest.raises(ProfileError, match="is empty"):
        parse_trace("t", content)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_trace_or_a_plain_fault(content: bytes) -> None:
    for text in (content, b"timestamp,input_length,output_length\n" + content):
        with suppress(ProfileError):
            assert len(parse_trace("t", text).times_s) > 0
