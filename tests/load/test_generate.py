"""Text Generation Inference's own endpoint: what is asked, and its streams under every cut."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploytui.load.generate import generate_body
from deploytui.load.orders import Prompt
from deploytui.load.trouble import LoadError
from tests.load.replay import cut, fold, record_of, told
from tests.load.server import END, Asked, Step, chunk, serving
from tests.load.test_render import talks
from tests.load.workers import loading

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def own(data: object) -> bytes:
    """An event as TGI writes it: nothing stands between the colon and the data."""
    return b"data:" + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def token(index: int, text: str, *, special: bool = False, **last: Any) -> bytes:
    row = {"id": index, "text": text, "logprob": -0.5, "special": special}
    return own({"index": index, "token": row, "generated_text": None, "details": None, **last})


def details(reason: str, count: int, **more: object) -> dict[str, object]:
    return {"finish_reason": reason, "generated_tokens": count, "seed": None, **more}


WHOLE = [
    token(1, "Der"),
    token(2, " Rhein"),
    token(3, " fließt"),
    token(4, "</s>", special=True, generated_text="Der Rhein fließt", details=details("eos_token", 4, input_length=7)),
]


def response(events: list[bytes]) -> bytes:
    return HEAD + b"".join(chunk(event) for event in events) + END


def test_a_stream_is_a_success_with_its_text_tokens_and_reason() -> None:
    record = record_of(response(WHOLE))
    assert (record.ok, record.error_kind, record.finish_reason) == (True, None, "stop")
    assert record.text == "Der Rhein fließt"
    assert (record.chunks, record.output_tokens, record.prompt_tokens) == (3, 4, 7)
    assert record.flags == ("no_done",)


@given(places=st.lists(st.integers(1, len(response(WHOLE)) - 1), max_size=12))
def test_no_cut_changes_what_a_stream_says(places: list[int]) -> None:
    content = response(WHOLE)
    assert told(record_of(*cut(content, places))) == told(record_of(content))


def test_each_token_has_the_stamp_of_its_read() -> None:
    reads = [(10, HEAD + chunk(WHOLE[0])), (20, chunk(WHOLE[1])), (30, chunk(WHOLE[2])), (40, chunk(WHOLE[3]) + END)]
    answer = fold(reads)
    assert list(answer.stamps) == [10, 20, 30]
    assert answer.record().end_ns == 40


def test_an_answer_that_was_long_enough_ends_by_length() -> None:
    events = [token(1, "a"), token(2, "b", generated_text="ab", details=details("length", 2))]
    record = record_of(response(events))
    assert (record.ok, record.finish_reason, record.output_tokens, record.chunks) == (True, "length", 2, 2)


def test_a_last_event_without_details_is_an_end_without_a_count() -> None:
    record = record_of(response([token(1, "a", generated_text="a")]))
    assert (record.ok, record.finish_reason, record.output_tokens) == (True, "unknown", None)


def test_a_piece_of_a_character_is_no_chunk() -> None:
    record = record_of(response([token(1, ""), token(2, "é", generated_text="é", details=details("length", 2))]))
    assert (record.chunks, record.output_tokens) == (1, 2)


def test_an_error_event_is_a_failure_with_the_servers_words() -> None:
    record = record_of(response([WHOLE[0], own({"error": "Request failed during generation", "error_type": "x"})]))
    assert (record.ok, record.error_kind, record.error) == (False, "stream_error", "Request failed during generation")
    assert record.chunks == 1


def test_a_stream_that_ends_before_its_last_token_is_cut_short() -> None:
    record = record_of(response(WHOLE[:2]))
    assert (record.ok, record.error_kind) == (False, "truncated")


def test_a_server_that_has_too_much_to_do_refuses() -> None:
    body = b'{"error":"Model is overloaded","error_type":"overloaded"}'
    head = b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    record = record_of(head + body)
    assert (record.ok, record.error_kind, record.error) == (False, "http_429", "Model is overloaded")


def test_greedy_sampling_is_asked_by_leaving_it_out() -> None:
    body = generate_body("hi", 9, {"temperature": 0.0, "top_p": 1.0, "seed": 4, "ignore_eos": False})
    assert body == {
        "inputs": "hi",
        "parameters": {
            "do_sample": False,
            "seed": 4,
            "max_new_tokens": 9,
            "details": True,
            "decoder_input_details": False,
        },
    }


def test_sampling_is_asked_in_its_own_words() -> None:
    asked = {"temperature": 0.7, "top_p": 0.9, "top_k": 40, "repetition_penalty": 1.1, "stop": ["x"]}
    parameters = generate_body("hi", 9, asked)["parameters"]
    assert parameters == {**parameters, **asked, "do_sample": True}


@pytest.mark.parametrize("word", ["ignore_eos", "min_p", "logit_bias"])
def test_what_it_has_no_word_for_is_refused(word: str) -> None:
    with pytest.raises(LoadError, match=word):
        generate_body("hi", 9, {word: 1})


def test_a_conversation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="no text for the generate endpoint"):
        talks(tmp_path, [Prompt(id=0, messages=[{"role": "user", "content": "x"}])], endpoint="generate")


def test_a_load_on_its_own_endpoint_has_all_its_answers(tmp_path: Path) -> None:
    def script(asked: Asked) -> Iterator[Step]:
        assert asked.target == "/generate_stream"
        yield HEAD
        for event in WHOLE:
            yield 0.002
            yield chunk(event)
        yield END

    sampling = {"temperature": 0.0, "seed": 1}
    with serving(script) as server, loading(tmp_path, server, 12, endpoint="generate", body=sampling) as load:
        load.said()
        records = load.records()
    assert [record.ok for record in records] == [True] * 12
    assert {record.output_tokens for record in records} == {4}
    assert {record.chunks for record in records} == {3}
    assert server.asked[0].body["inputs"] == "p0"
    assert server.asked[0].body["parameters"]["max_new_tokens"] == 4
    assert server.connections == 4
