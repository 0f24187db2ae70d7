"""Datasets of prompts, messages and recorded conversations."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.errors import ProfileError
from deploytui.plan.dataset import Dataset, Item, parse_dataset, taken

ASK = {"role": "user", "content": "why?"}
TALK = [
    {"from": "system", "value": "be kind"},
    {"from": "human", "value": "one?"},
    {"from": "gpt", "value": "1"},
    {"from": "human", "value": "two?"},
    {"from": "gpt", "value": "2"},
]


def jsonl(*lines: Any) -> Dataset:
    """The dataset of these lines; a text goes in as it is."""
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return parse_dataset("d.jsonl", text.encode())


def refusal(*lines: Any) -> ProfileError:
    """The error that a dataset is refused with."""
    with pytest.raises(ProfileError) as caught:
        jsonl(*lines)
    return caught.value


def test_texts_and_messages_become_items_and_blank_lines_do_not() -> None:
    found = jsonl({"prompt": "a", "max_tokens": 5}, "", {"messages": [ASK], "output_tokens": 7, "id": 3})
    assert [(item.place, item.prompt, item.max_tokens) for item in found.items] == [
        ("line 1", "a", 5),
        ("line 3", None, 7),
    ]
    assert found.items[1].question(0, 1) == [ASK]


def test_a_share_gpt_list_becomes_conversations() -> None:
    found = parse_dataset("s.json", json.dumps([{"id": "x", "conversations": TALK}]).encode())
    (item,) = found.items
    assert item.requests(1) == 1
    assert item.requests(5) == 2
    assert item.question(0, 1) == [{"role": "system", "content": "be kind"}, {"role": "user", "content": "one?"}]
    second = item.question(1, 2)
    assert second is not None
    assert [message["role"] for message in second] == ["system", "user", "assistant", "user"]


def test_messages_are_one_request_unless_turns_are_asked() -> None:
    answer = {"role": "assistant", "content": "so"}
    (item,) = jsonl({"messages": [ASK, answer, ASK, answer]}).items
    assert item.question(0, 1) == [ASK, answer, ASK]
    assert [item.question(turn, 2) for turn in range(item.requests(2))] == [[ASK], [ASK, answer, ASK]]


def test_a_conversation_begins_with_its_first_question_and_one_without_any_is_left_out() -> None:
    found = jsonl(
        {"conversations": [{"from": "gpt", "value": "hello"}, {"from": "human", "value": "a?"}]},
        {"conversations": [{"from": "gpt", "value": "alone"}]},
        {"conversations": []},
    )
    assert found.items[0].question(0, 1) == [{"role": "user", "content": "a?"}]
    assert (len(found.items), found.skipped) == (1, 2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is no object"),
        ({"text": "a"}, "line 2 has no prompt, messages or conversations"),
        ({"prompt": "a", "messages": [ASK]}, "line 2 has both prompt and messages"),
        ({"prompt": ""}, "line 2: prompt is no text"),
        ({"prompt": 5}, "line 2: prompt is no text"),
        ({"prompt": "a", "max_tokens": 0}, "line 2: max_tokens is 0"),
        ({"prompt": "a", "output_tokens": "5"}, "line 2: output_tokens is '5'"),
        ({"messages": []}, "line 2: no message is the user's"),
        ({"messages": "hi"}, "line 2: messages is no list"),
        ({"messages": [ASK, {"role": "robot", "content": "x"}]}, "line 2, message 2: its role is 'robot'"),
        ({"messages": [{"role": "user"}]}, "line 2, message 1: its content is no text"),
        ({"messages": [{"role": "user", "content": ""}]}, "line 2, message 1: it says nothing"),
        ({"conversations": {"from": "human"}}, "line 2: conversations is no list"),
        ({"conversations": [{"from": "alien", "value": "x"}]}, "line 2, turn 1: from is 'alien'"),
        ({"conversations": [{"from": "human"}]}, "line 2, turn 1: value is no text"),
    ],
)
def test_a_broken_line_is_named_with_what_is_wrong(line: Any, words: str) -> None:
    error = refusal({"prompt": "fine"}, line)
    assert words in error.what
    assert error.fix


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf", b"[]", b'[{"conversations": []}]'])
def test_an_empty_dataset_is_refused(content: bytes) -> None:
    with pytest.raises(ProfileError, match="is empty"):
        parse_dataset("d", content)


def test_a_broken_list_names_its_line_and_a_broken_item_its_number() -> None:
    with pytest.raises(ProfileError, match="line 2 is not JSON"):
        parse_dataset("d", b'[{"prompt": "a"},\n {"prompt": oops}]')
    with pytest.raises(ProfileError, match="item 2 has no prompt"):
        parse_dataset("d", b'[{"prompt": "a"}, {"text": "b"}]')


@given(st.binary(max_size=60))
def test_any_bytes_are_a_dataset_or_a_plain_fault(content: bytes) -> None:
    with suppress(ProfileError):
        assert parse_dataset("d", content).items


def test_the_file_is_known_by_its_bytes() -> None:
    assert jsonl({"prompt": "a"}).sha256 == jsonl({"prompt": "a"}).sha256 != jsonl({"prompt": "b"}).sha256


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.lists(st.integers(0, 20), max_size=4), st.integers(1, 4))
def test_every_item_is_taken_before_any_is_taken_again(turns: list[int], counts: list[int], asked: int) -> None:
    items = [Item(place="", messages=(ASK,) * n, asks=tuple(range(n))) for n in turns]
    found = taken(items, range(len(items)), counts, asked)
    for own, count in zip(found, counts, strict=True):
        assert sum(items[place].requests(asked) for place in own) >= count
        assert count == 0 or sum(items[place].requests(asked) for place in own[:-1]) < count
    flat = [place for own in found for place in own]
    assert flat == [place % len(items) for place in range(len(flat))]
