"""Task files: what is read, and what is refused with its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from deploytui.errors import ProfileError
from deploytui.quality.tasks import load_task, parse_task, prompts_for

GOOD: dict[str, Any] = {"id": "a", "prompt": "Capital of France?", "checker": "contains", "expected": "Paris"}


def lines(*items: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def changed(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in {**GOOD, **fields}.items() if value is not None}


def test_the_built_in_task_is_ready_to_ask() -> None:
    task = load_task("builtin:basic", Path("/nowhere"))
    assert task.name == "builtin:basic"
    assert 12 <= len(task.items) <= 16
    assert len(task.sha256) == 64
    assert {item.checker for item in task.items} == {"contains", "exact", "number", "choice", "regex", "json"}


def test_a_task_path_is_relative_to_the_profile(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_bytes(lines(GOOD))
    assert load_task("mine.jsonl", tmp_path).items[0].expected == "Paris"


def test_an_unknown_built_in_task_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        load_task("builtin:basics", tmp_path)
    assert "builtin:basic" in caught.value.fix


def test_a_missing_task_file_is_a_fault_of_the_profile(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"gone\.jsonl can't be read"):
        load_task("gone.jsonl", tmp_path)


def test_the_same_bytes_have_the_same_hash() -> None:
    one, two = parse_task("x", lines(GOOD)), parse_task("y", lines(GOOD))
    assert one.sha256 == two.sha256
    assert one.sha256 != parse_task("x", lines(changed(id="b"))).sha256


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n \n"])
def test_line_ends_blank_lines_and_a_byte_order_mark_do_no_harm(end: bytes) -> None:
    content = b"\xef\xbb\xbf" + end.join(lines(item).rstrip() for item in (GOOD, changed(id="b"))) + end
    assert [item.id for item in parse_task("x", content).items] == ["a", "b"]


def test_a_line_separator_inside_a_prompt_ends_no_line() -> None:
    content = json.dumps(changed(prompt="one\u2028two"), ensure_ascii=False).encode()
    assert parse_task("x", content).items[0].prompt == "one\u2028two"


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (changed(checker="contain"), "not a task item"),
        (changed(checker="json_schema"), "not available yet"),
        (changed(expect="Paris"), "not a task item"),
        (changed(prompt=None), "either prompt or messages"),
        (changed(messages=[{"role": "user", "content": "x"}]), "either prompt or messages"),
        (changed(prompt=None, messages=[]), "asks nothing"),
        (changed(prompt=None, messages=[{"content": "x"}]), "asks nothing"),
        (changed(expected=None), "must be a text"),
        (changed(expected=["", "x"]), "must be a text"),
        (changed(checker="regex", expected="(a"), "does not compile"),
        (changed(checker="regex", expected="(a+)+b"), "may take for ever"),
        (changed(format="[a"), "does not compile"),
        (changed(checker="number"), "must be a number"),
        (changed(checker="number", expected=True), "must be a number"),
        (changed(checker="choice", expected="maybe"), "one of its choices"),
        (changed(checker="choice", expected="C", choices=["A", "B"]), "one of its choices"),
        (changed(max_tokens=0), "not a task item"),
        (changed(tolerance=-1), "not a task item"),
    ],
)
def test_a_faulty_item_is_refused_with_its_line(item: dict[str, Any], told: str) -> None:
    with pytest.raises(ProfileError, match=told) as caught:
        parse_task("mine", lines(changed(id="first"), item))
    assert "line 2" in caught.value.what


@pytest.mark.parametrize("line", [b'{"id": "a", ', b"[1]", b'"text"', b"\xff\xfe", b'{"id": NaN}', b"[" * 5000])
def test_what_is_no_json_object_is_refused_with_its_line(line: bytes) -> None:
    with pytest.raises(ProfileError, match="line 2"):
        parse_task("mine", lines(GOOD) + line)


def test_an_unknown_checker_names_the_known_ones() -> None:
    with pytest.raises(ProfileError) as caught:
        parse_task("mine", lines(changed(checker="equals")))
    assert "exact, contains, regex" in caught.value.fix


def test_an_id_given_twice_names_both_lines() -> None:
    with pytest.raises(ProfileError, match=r"line 3: id 'a' stands in line 1"):
        parse_task("mine", lines(GOOD, changed(id="b"), GOOD))


def test_a_file_without_items_is_refused() -> None:
    with pytest.raises(ProfileError, match="no items"):
        parse_task("mine", b"\n\n")


def test_every_item_becomes_one_prompt_with_its_own_length() -> None:
    chat = changed(id="b", prompt=None, messages=[{"role": "user", "content": "x"}], max_tokens=5)
    one, two = prompts_for(parse_task("mine", lines(GOOD, chat)), max_tokens=64)
    assert (one.id, one.prompt, one.messages, one.max_tokens) == (0, "Capital of France?", None, 64)
    assert (two.id, two.prompt, two.max_tokens) == (1, None, 5)
    assert two.messages == [{"role": "user", "content": "x"}]
