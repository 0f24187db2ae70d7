"""What real engines sent, read under every packing."""

import functools
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploytui.load import answer as answer_module
from deploytui.load.answer import Answer
from deploytui.load.chunks import parse
from deploytui.load.http1 import ResponseReader
from deploytui.load.sse import Event, EventReader
from tests.load.replay import REFUSALS, STREAMS, cut, fold, named, record_of, told

COMPLETE = [path for path in STREAMS if not path.stem.startswith("killed") and not path.stem.endswith("nostream")]
KILLED = [path for path in STREAMS if path.stem.startswith("killed")]
NOT_STREAMED = [path for path in (*REFUSALS, *STREAMS) if b"application/json" in path.read_bytes()[:400]]


@pytest.fixture(autouse=True)
def each_event_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_module, "parse", functools.lru_cache(parse))


@functools.cache
def finest_of(path: Path) -> tuple[bytes, Answer]:
    """A capture read byte by byte, the stamp of each byte its place."""
    content = path.read_bytes()
    return content, fold((at + 1, content[at : at + 1]) for at in range(len(content)))


def test_the_recorded_streams_are_all_here() -> None:
    assert len(COMPLETE) == 10
    assert len(KILLED) == 5


@pytest.mark.parametrize("path", COMPLETE, ids=named)
def test_a_complete_stream_is_a_success_with_all_its_tokens(path: Path) -> None:
    record = record_of(path.read_bytes())
    assert record.ok
    assert record.error_kind is None
    assert record.chunks == 24
    assert record.finish_reason == "length"
    assert record.text is not None
    assert record.text.startswith(("The rainbow is", " Paris."))
    counts_usage = "llama-cpp-python" not in path.parent.name
    assert record.output_tokens == (24 if counts_usage else None)
    assert record.prompt_tokens == ((37 if path.stem.startswith("chat") else 5) if counts_usage else None)
    assert record.flags == (("no_done",) if "transformers" in path.parent.name else ())


@pytest.mark.parametrize("path", KILLED, ids=named)
def test_an_engine_killed_in_mid_answer_is_a_failure_that_keeps_its_tokens(path: Path) -> None:
    record = record_of(path.read_bytes())
    assert not record.ok
    assert record.error_kind == ("stream_error" if "killed_engine" in path.stem else "truncated")
    assert record.chunks > 5
    assert record.first_token_ns is not None


def test_an_error_event_before_done_carries_the_engines_words() -> None:
    path = next(path for path in KILLED if "killed_engine" in path.stem)
    record = record_of(path.read_bytes())
    assert record.error is not None
    assert record.error.startswith("EngineCore encountered an issue.")


def read_events(*reads: bytes) -> tuple[list[Event], Event | None, bool]:
    """All events of a response, the unterminated one, and whether the response was cut short."""
    http, sse = ResponseReader(), EventReader()
    events = [event for data in reads for event in sse.feed(http.feed(data))]
    return events, sse.unterminated(), http.eof()


@pytest.mark.parametrize("path", STREAMS, ids=named)
def test_no_place_of_a_cut_between_two_reads_changes_the_events(path: Path) -> None:
    content = path.read_bytes()
    whole = read_events(content)
    for place in range(1, len(content)):
        assert read_events(content[:place], content[place:]) == whole, place


@pytest.mark.parametrize("path", [*STREAMS, *REFUSALS], ids=named)
def test_no_place_of_a_cut_between_two_reads_changes_the_record(path: Path) -> None:
    content = path.read_bytes()
    whole = told(record_of(content))
    step = 1 if len(content) < 2000 else 7  # the record follows from the events, which are compared at every place
    for place in range(1, len(content), step):
        assert told(record_of(content[:place], content[place:])) == whole, place


@pytest.mark.parametrize("path", [*STREAMS, *REFUSALS], ids=named)
def test_byte_by_byte_gives_the_same_record(path: Path) -> None:
    content = path.read_bytes()
    single = record_of(*(content[at : at + 1] for at in range(len(content))))
    assert told(single) == told(record_of(content))
    assert single.multi_chunk_reads == 0


@pytest.mark.parametrize("path", STREAMS, ids=named)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_packing_gives_the_same_record_and_each_chunk_the_stamp_of_its_read(
    path: Path, data: st.DataObject
) -> None:
    content, finest = finest_of(path)
    reads = cut(content, data.draw(st.lists(st.integers(1, len(content) - 1), max_size=40)))
    ends = [sum(map(len, reads[: n + 1])) for n in range(len(reads))]
    packed = fold(zip(ends, reads, strict=True))
    assert packed.record().text == finest.record().text
    assert packed.record().error_kind == finest.record().error_kind
    assert list(packed.stamps) == [min(end for end in ends if end >= stamp) for stamp in finest.stamps]
    assert packed.record().reads == len(reads)
    shared = [list(packed.stamps).count(end) for end in ends]
    assert packed.record().multi_chunk_reads == sum(count > 1 for count in shared)


@pytest.mark.parametrize("path", NOT_STREAMED, ids=named)
def test_an_answer_that_is_no_event_stream_is_told_apart(path: Path) -> None:
    content = path.read_bytes()
    record = record_of(content)
    status = int(content.split()[1])
    assert not record.ok
    assert record.http_status == status
    assert record.error_kind == ("not_a_stream" if status == 200 else f"http_{status}")
    assert record.first_token_ns is None
    assert record.error


def test_the_servers_words_are_found_in_each_shape_of_error_body() -> None:
    words = {named(path): record_of(path.read_bytes()).error for path in REFUSALS}
    assert words["llamacpp-server-xllamacpp-2026.10.11549/err_context_too_long"] == (
        "request (40031 tokens) exceeds the available context size (1024 tokens), try increasing it"
    )
    assert words["sglang-0.5.23-cpu/err_context_too_long"] == (
        "The input (40031 tokens) is longer than the model's context length (1024 tokens)."
    )
    assert words["transformers-serve-5.24.0/err_wrong_model"] == (
        "Server is pinned to '/models/smollm2-bf16'; requested 'no-such-model'."
    )
    assert words["transformers-serve-5.24.0/err_bad_json"] == "Internal Server Error"
    assert str(words["vllm-0.32.0-cpu/err_wrong_model"]).startswith("The model `no-such-model` does not exist.")


def test_a_200_with_an_empty_stream_is_a_failure() -> None:
    path = next(path for path in REFUSALS if named(path) == "llama-cpp-python-0.3.36/err_context_too_long")
    record = record_of(path.read_bytes())
    assert (record.ok, record.error_kind, record.http_status) == (False, "empty", 200)
    assert record.first_token_ns is None


@pytest.mark.parametrize("path", COMPLETE, ids=named)
def test_recorded_reads_at_their_recorded_times_give_the_recorded_latencies(path: Path) -> None:
    content = path.read_bytes()
    recv = msgspec.json.decode(path.with_suffix(".timing.json").read_bytes())["recv"]
    ends = list(accumulate(size for _, size in recv))
    reads = [(round(at_ms * 1e6), content[end - size : end]) for (at_ms, size), end in zip(recv, ends, strict=True)]
    record = fold(reads).record()
    assert record.ok
    assert told(record).text == record_of(content).text
    assert record.first_chunk_ns is not None
    assert record.first_token_ns is not None
    assert record.last_token_ns is not None
    assert reads[0][0] <= record.first_chunk_ns <= record.first_token_ns < record.last_token_ns <= record.end_ns
    assert record.first_token_ns in [at_ns for at_ns, data in reads if b'"The"' in data or b'" Paris"' in data]
    assert record.reads == len(recv)
