"""The requests of a part: token-exact, alike for every candidate, each asking what it should."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploytui.errors import ProfileError
from deploytui.plan.asked import asked_tokens, common_output_tokens, longest_request, room_needed
from deploytui.plan.dataset import parse_dataset
from deploytui.plan.inputs import Inputs, check_inputs, input_notes
from deploytui.plan.parts import Part, measured_part, parts
from deploytui.plan.prompts import Calibration, Vocabulary
from deploytui.plan.requests import Request, part_requests
from deploytui.plan.trace import parse_trace
from deploytui.plan.words import WORDS
from deploytui.profile.load_schema import Burst, Closed, Constant, Poisson, TraceReplay, Uniform
from deploytui.profile.schema import SharedPrefix, Workload

OVERHEAD, A_TURN = 12, 7
FOUND = Calibration(Vocabulary(WORDS[:16], WORDS), OVERHEAD, A_TURN)
BASE: dict[str, Any] = {"prompt_tokens": 40, "output_tokens": 8, "requests": 12, "load": Closed(concurrency=2)}


def workload(**changes: Any) -> Workload:
    return Workload(**BASE | changes)


def made(asked: Workload, part: Part | None = None, inputs: Inputs | None = None) -> list[Request]:
    """The requests of a part, by default of the first measured one."""
    return list(part_requests(asked, part or parts(asked)[1], FOUND, inputs or Inputs()))


def tokens(request: Request) -> int:
    """What a tokenizer with a chat template makes of a request."""
    texts = [request.prompt or ""] if request.messages is None else [m["content"] for m in request.messages]
    return OVERHEAD + A_TURN * (len(texts) // 2) + sum(len(text.split()) for text in texts)


def common_words(one: str, other: str) -> int:
    """How many leading words two texts share."""
    pairs = list(zip(one.split(), other.split(), strict=False))
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(pairs))


def dataset(*lines: Any) -> Inputs:
    return Inputs(dataset=parse_dataset("d", "\n".join(map(json.dumps, lines)).encode()))


def trace(*rows: tuple[int, int, int]) -> Inputs:
    lines = [{"timestamp": ms, "input_length": asked, "output_length": answered} for ms, asked, answered in rows]
    return Inputs(trace=parse_trace("t", "\n".join(map(json.dumps, lines)).encode()))


def talk(turns: int, name: str = "") -> dict[str, Any]:
    """A recorded conversation."""
    said = [[{"from": "human", "value": f"{name} q{k}"}, {"from": "gpt", "value": f"a{k}"}] for k in range(turns)]
    return {"conversations": [turn for pair in said for turn in pair]}


def test_a_plain_workload_says_nothing_but_its_prompts() -> None:
    for request in made(workload()):
        assert (request.max_tokens, request.at_s, request.conversation, request.messages) == (None,) * 4
        assert tokens(request) == request.tokens == 40


@settings(max_examples=30, deadline=None)
@given(st.integers(20, 60), st.integers(0, 40), st.integers(1, 60), st.integers(1, 5), st.integers(0, 9))
def test_prompts_of_any_length_and_turn_have_exactly_the_tokens_they_should(
    low: int, room: int, count: int, turns: int, seed: int
) -> None:
    asked = workload(
        prompt_tokens=Uniform(min=low, max=low + room),
        output_tokens=Uniform(min=1, max=9),
        requests=count,
        turns=turns,
        seed=seed,
    )
    requests = made(asked)
    assert [request.id for request in requests] == list(range(count))
    assert [tokens(request) for request in requests] == [request.tokens for request in requests]
    assert {request.id: request.max_tokens for request in requests} == asked_tokens(asked, parts(asked)[1])
    longest = max((request.tokens or 0) + (request.max_tokens or 0) for request in requests)
    assert longest <= longest_request(asked) <= common_output_tokens(asked) + (low + room + 9) * turns


def test_a_conversation_carries_all_that_was_said_and_asks_once_a_line() -> None:
    requests = made(workload(turns=3, requests=8))
    assert [request.conversation for request in requests] == [0, 0, 0, 1, 1, 1, 2, 2]
    for earlier, later in pairwise(requests):
        assert later.messages is not None
        if later.conversation == earlier.conversation:
            assert later.messages[:-2] == earlier.messages
            assert later.messages[-2]["role"] == "assistant"
            assert len(later.messages[-2]["content"].split()) == 8
        else:
            assert len(later.messages) == 1
    firsts = [request.messages[0]["content"] for request in requests if request.messages]
    assert common_words(firsts[0], firsts[3]) == 0


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 0.95), st.integers(1, 4), st.integers(2, 60), st.integers(0, 30))
def test_a_group_shares_the_ratio_of_its_prompts_and_nothing_behind(
    ratio: float, groups: int, count: int, room: int
) -> None:
    asked = workload(
        prompt_tokens=Uniform(min=40, max=40 + room),
        shared_prefix=SharedPrefix(ratio=ratio, groups=groups),
        requests=count,
    )
    requests = made(asked)
    texts = [request.prompt or "" for request in requests]
    assert [tokens(request) for request in requests] == [request.tokens for request in requests]
    assert len(set(texts)) == count
    shared = [
        min(round(ratio * (request.tokens or 0)), len(text.split()) - 1)
        for request, text in zip(requests, texts, strict=True)
    ]
    for number in range(count - groups):
        least = min(shared[number], shared[number + groups])
        assert common_words(texts[number], texts[number + groups]) >= least
        if shared[number] == shared[number + groups]:
            assert common_words(texts[number], texts[number + groups]) == least
    if groups > 1:
        assert common_words(texts[0], texts[1]) == 0


def test_a_groups_words_are_those_of_the_warm_up() -> None:
    asked = workload(shared_prefix=SharedPrefix(ratio=0.5), warmup_requests=3)
    warm, first = (made(asked, part)[0].prompt or "" for part in parts(asked)[:2])
    assert common_words(warm, first) == 20


def test_a_prompt_too_short_for_the_template_is_refused_whatever_the_turn() -> None:
    with pytest.raises(ProfileError, match="too short"):
        made(workload(prompt_tokens=OVERHEAD))
    with pytest.raises(ProfileError, match="each further turn"):
        list(
            part_requests(workload(prompt_tokens=5, turns=2), parts(workload())[1], Calibration(FOUND.vocabulary, 1, 5))
        )


def test_an_open_loop_says_when_each_is_sent_and_the_warm_up_does_not() -> None:
    asked = workload(load=Constant(rate=(2.0, 4.0)), decide_at=2.0, warmup_requests=3)
    warmup, slow, fast = parts(asked)[:3]
    assert [part.name for part in parts(asked)[:4]] == ["warmup", "p0.r0", "p1.r0", "p0.r1"]
    assert [request.at_s for request in made(asked, warmup)] == [None] * 3
    assert [request.at_s for request in made(asked, slow)][:3] == [0, 0.5, 1.0]
    assert [request.at_s for request in made(asked, fast)][:3] == [0, 0.25, 0.5]


def test_points_of_a_repeat_have_its_lengths_and_prompts_of_their_own() -> None:
    asked = workload(load=Closed(concurrency=(1, 2)), decide_at=1, prompt_tokens=Uniform(min=20, max=60))
    one, other = (made(asked, measured_part(asked, point, 0)) for point in (0, 1))
    assert [request.tokens for request in one] == [request.tokens for request in other]
    assert not {request.prompt for request in one} & {request.prompt for request in other}


def test_only_a_conversations_first_turn_has_a_time() -> None:
    asked = workload(load=Constant(rate=1.0), turns=2, requests=4)
    assert [request.at_s for request in made(asked)] == [0, None, 1, None]


def test_a_dataset_is_asked_in_another_order_and_item_by_item() -> None:
    inputs = dataset(*({"prompt": f"p{k}"} for k in range(60)))
    asked = workload(prompt_tokens=None, dataset="d", warmup_requests=10, repeats=3)
    texts = [request.prompt for part in parts(asked) for request in made(asked, part, inputs)]
    assert len(texts) == len(set(texts)) == 46
    assert texts != [f"p{k}" for k in range(46)]
    assert not any("again" in note for note in input_notes(asked, inputs))
    assert made(asked, inputs=inputs)[0].tokens is None


def test_items_are_asked_again_only_after_all_were_and_that_is_said() -> None:
    inputs = dataset(*({"prompt": f"p{k}"} for k in range(7)))
    asked = workload(prompt_tokens=None, dataset="d", warmup_requests=0, repeats=1)
    texts = [request.prompt for request in made(asked, inputs=inputs)]
    assert len(set(texts[:7])) == 7
    assert texts[7:] == texts[:5]
    assert any("7 items for 12 requests" in note and "prefix cache" in note for note in input_notes(asked, inputs))


def test_an_items_own_answer_length_goes_before_the_workloads() -> None:
    inputs = dataset({"prompt": "a", "max_tokens": 3}, {"prompt": "b"})
    asked = workload(prompt_tokens=None, dataset="d", requests=2, warmup_requests=0)
    own = {request.prompt: request.max_tokens for request in made(asked, inputs=inputs)}
    assert own == {"a": 3, "b": 8}
    assert sorted(asked_tokens(asked, parts(asked)[1], inputs).values()) == [3, 8]
    assert common_output_tokens(asked, inputs) == 8
    assert room_needed(asked, inputs) >= 8


def test_recorded_conversations_are_asked_turn_by_turn() -> None:
    inputs = dataset(talk(3, "x"), talk(1, "y"), talk(2, "z"))
    asked = workload(prompt_tokens=None, dataset="d", turns=2, requests=5, warmup_requests=0)
    requests = made(asked, inputs=inputs)
    assert sorted(len(request.messages or ()) for request in requests) == [1, 1, 1, 3, 3]
    assert {request.conversation for request in requests} == {0, 1, 2}
    cut = workload(prompt_tokens=None, dataset="d", turns=2, requests=4, warmup_requests=0)
    assert len(made(cut, inputs=inputs)) == 4


def test_a_trace_gives_times_and_lengths() -> None:
    inputs = trace((100, 30, 4), (300, 20, 9), (350, 25, 2))
    asked = Workload(requests=2, load=TraceReplay(path="t", speed=2.0), warmup_requests=5)
    requests = made(asked, inputs=inputs)
    assert [(request.at_s, request.tokens, request.max_tokens) for request in requests] == [(0, 30, 4), (0.1, 20, 9)]
    assert [request.tokens for request in made(asked, parts(asked)[0], inputs)] == [30, 20, 25, 30, 20]
    assert longest_request(asked, inputs) == 34


def test_a_trace_leaves_lengths_to_a_workload_that_has_them() -> None:
    inputs = trace((0, 30, 4), (300, 20, 9))
    requests = made(workload(load=TraceReplay(path="t"), requests=2), inputs=inputs)
    assert [(request.at_s, request.tokens, request.max_tokens) for request in requests] == [
        (0, 40, None),
        (0.3, 40, None),
    ]


def refusal(asked: Workload, inputs: Inputs) -> str:
    with pytest.raises(ProfileError) as caught:
        check_inputs(asked, inputs)
    return caught.value.what


def test_files_that_do_not_give_enough_are_refused() -> None:
    short = trace((0, 30, 4), (300, 20, 9))
    assert "has 2 lines, and workload.requests needs 12" in refusal(workload(load=TraceReplay(path="t")), short)
    timed = Inputs(trace=parse_trace("t", b'{"timestamp": 0}'))
    bare = Workload(requests=1, load=TraceReplay(path="t"))
    assert "line 1 has no lengths" in refusal(bare, timed)
    check_inputs(workload(requests=1, load=TraceReplay(path="t")), timed)
    chat = workload(prompt_tokens=None, dataset="d", endpoint="completions")
    assert "line 2 has messages" in refusal(chat, dataset({"prompt": "a"}, talk(1)))
    turns = workload(prompt_tokens=None, dataset="d", turns=2)
    assert "no item of the dataset 'd' has a second turn" in refusal(turns, dataset(talk(1), {"prompt": "a"}))


def test_a_part_that_no_session_has_can_be_made_too() -> None:
    asked = workload()
    searched = Part(name="p7.r0", requests=3, load=Poisson(rate=5.0), draw="r0")
    assert [request.at_s is None for request in made(asked, searched)] == [False] * 3
    inputs = dataset(*({"prompt": f"p{k}"} for k in range(20)))
    told = workload(prompt_tokens=None, dataset="d", load=Burst())
    assert len(made(told, searched, inputs)) == 3


def test_no_requests_are_no_requests() -> None:
    for turns in (1, 2):
        assert made(workload(turns=turns, warmup_requests=0), parts(workload(warmup_requests=0))[0]) == []
    assert (
        made(workload(warmup_requests=0, shared_prefix=SharedPrefix(ratio=0.5)), parts(workload(warmup_requests=0))[0])
        == []
    )
