"""A prompts file as requests: who sends what, and what is said of a line that can't be sent."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.client import Target
from deploytui.load.orders import LoadOrder, Prompt
from deploytui.load.render import Talk, render
from deploytui.load.trouble import LoadError

TARGET = Target(host="localhost", port=80, addresses=("127.0.0.1",), path="", tls=False)


def order(prompts: Path, **changes: object) -> LoadOrder:
    plain = {"base_url": "http://localhost", "endpoint": "chat", "model": "m", "output_tokens": 4, "concurrency": 1}
    return msgspec.convert({**plain, "prompts": str(prompts), "records": "r", "stamps": "s", **changes}, LoadOrder)


def talks(folder: Path, lines: list[Prompt], **changes: object) -> list[Talk]:
    path = folder / "prompts.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines(lines))
    return render(order(path, **changes), TARGET)


def body(talk: Talk) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(talk[0].content.partition(b"\r\n\r\n")[2])
    return parsed


CONVERSATIONS = st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=12)


@given(of=CONVERSATIONS, shards=st.integers(1, 4))
def test_several_workers_send_each_line_once_and_no_conversation_is_torn(
    tmp_path_factory: pytest.TempPathFactory, of: list[int | None], shards: int
) -> None:
    lines = [Prompt(id=k, prompt="x", conversation=conversation) for k, conversation in enumerate(of)]
    folder = tmp_path_factory.mktemp("shards")
    each = [talks(folder, lines, shard=shard, shards=shards) for shard in range(shards)]
    sent = [request for part in each for talk in part for request in talk]
    assert sorted(request.id for request in sent) == list(range(len(of)))
    whole = [talk for part in each for talk in part if talk[0].conversation is not None]
    assert len({talk[0].conversation for talk in whole}) == len(whole)
    assert all([turn.id for turn in talk] == sorted(turn.id for turn in talk) for talk in whole)
    counts = [len(part) for part in each]
    assert max(counts) - min(counts) <= 1


def test_a_line_has_its_own_length_time_and_conversation(tmp_path: Path) -> None:
    line = Prompt(id=7, prompt="x", max_tokens=9, at_s=1.5, conversation=3)
    ((request,),) = talks(tmp_path, [line])
    assert (request.id, request.at_s, request.conversation, request.asked_tokens) == (7, 1.5, 3, 9)
    assert body((request,))["max_tokens"] == 9
    assert b"X-Request-Id: 7\r\n" in request.content
    ((plain,),) = talks(tmp_path, [Prompt(id=0, prompt="x")])
    assert (plain.asked_tokens, body((plain,))["max_tokens"]) == (None, 4)


def test_extra_fields_and_headers_go_along_but_never_in_place_of_the_question(tmp_path: Path) -> None:
    extra = {"body": {"min_tokens": 3, "model": "other", "stream": False}, "headers": {"accept": "*/*", "X-Team": "a"}}
    ((request,),) = talks(tmp_path, [Prompt(id=0, prompt="x")], **extra)
    sent = body((request,))
    assert (sent["min_tokens"], sent["model"], sent["stream"]) == (3, "m", True)
    head = request.content.partition(b"\r\n\r\n")[0].decode()
    assert "X-Team: a" in head
    assert "accept: */*" in head
    assert "Accept: text" not in head


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"id": 0, "prompt": "a"}\nnot JSON\n', "Line 2 of the prompts"),
        ('{"id": 0, "prompt": "a"}\n\n{"id": "x"}\n', "Line 3 of the prompts"),
        ('{"id": 0, "prompt": "a"}\n{"id": 0, "prompt": "b"}\n', "Line 2 of the prompts .* has the id 0"),
        ('{"id": -1, "prompt": "a"}\n', "Line 1 .* id -1"),
        ('{"id": 0}\n', "Line 1 .* neither text nor messages"),
        ('{"id": 0, "prompt": "a", "at_s": -0.5}\n', "Line 1 .* 0.5 s before the start"),
        ("", "hold no prompt"),
        ("\n\n", "hold no prompt"),
    ],
)
def test_a_line_that_cannot_be_sent_is_named_by_its_number(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(text)
    with pytest.raises(LoadError, match=words):
        render(order(path), TARGET)


def test_text_that_json_cannot_hold_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'{"id": 0, "prompt": "\xff"}\n')
    with pytest.raises(LoadError, match="Line 1 of the prompts"):
        render(order(path), TARGET)


def test_a_conversation_without_a_prompt_for_completions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"Line 1 .* completions"):
        talks(tmp_path, [Prompt(id=0, messages=[{"role": "user", "content": "x"}])], endpoint="completions")
