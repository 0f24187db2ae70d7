"""Prompts that have the asked number of tokens and share no prefix."""

import re
from collections.abc import Callable, Generator
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deploytui.errors import ProfileError
from deploytui.plan.prompts import Calibration, Vocabulary, calibration, prompt_text, varied_prompts, words_for
from deploytui.plan.words import WORDS

T = TypeVar("T")
Count = Callable[[str], int]


def make_prompts(vocabulary: Vocabulary | None, words_each: int, seed: int, part: str, count: int) -> list[str]:
    return list(varied_prompts(vocabulary, [words_each] * count, seed, part))


def tokenizer(long_within: frozenset[str], long_first: frozenset[str], overhead: int) -> Count:
    """A tokenizer with a chat template, for which some words are two tokens, perhaps only at the start of a text."""

    def count(text: str) -> int:
        first, *rest = text.split()
        within = sum(2 if word in long_within else 1 for word in rest)
        return overhead + (2 if first in long_first else 1) + within

    return count


def run(steps: Generator[str, int, T], count: Count) -> tuple[T, list[str]]:
    """What a calibration finds with a tokenizer, and the texts it wanted counted."""
    asked = [next(steps)]
    while True:
        try:
            asked.append(steps.send(count(asked[-1])))
        except StopIteration as done:
            found: T = done.value
            return found, asked


def calibrated(count: Count, longest_tokens: int | None = None) -> Calibration:
    """The calibration a tokenizer allows."""
    found, _ = run(calibration(longest_tokens), count)
    assert found is not None
    return found


some_words = st.frozensets(st.sampled_from(WORDS), max_size=60)


@settings(max_examples=60, deadline=None)
@given(some_words, some_words, st.integers(0, 90), st.integers(1, 200), st.integers(0, 3))
def test_every_prompt_has_exactly_the_asked_tokens(
    within: frozenset[str], first: frozenset[str], overhead: int, room: int, seed: int
) -> None:
    count = tokenizer(within, first, overhead)
    target = overhead + 3 + room
    found = calibrated(count, target)
    prompts = make_prompts(found.vocabulary, words_for(found, target), seed, "r0", 20)
    assert {count(prompt) for prompt in prompts} == {target}
    assert len(set(prompts)) == 20


def test_a_template_that_splits_every_first_word_is_part_of_the_overhead() -> None:
    found = calibrated(tokenizer(frozenset(), frozenset(WORDS), 10))
    assert found.overhead_tokens == 11


def test_a_clean_tokenizer_keeps_every_word_and_is_asked_little() -> None:
    found, asked = run(calibration(2048), tokenizer(frozenset(), frozenset(), 30))
    assert found == Calibration(Vocabulary(WORDS[:16], WORDS), 30)
    assert len(asked) == 17


def test_no_text_is_longer_than_the_engine_can_take() -> None:
    _, asked = run(calibration(64), count := tokenizer(frozenset(WORDS[20:30]), frozenset(), 30))
    assert max(count(text) for text in asked) <= 64 + 10
    _, asked = run(calibration(), count)
    assert max(len(text.split()) for text in asked) == 17


@pytest.mark.parametrize("count", [len, lambda text: 7, lambda text: len(text) // 2 + 9])
def test_tokens_that_do_not_follow_words_are_told_as_such(count: Count) -> None:
    found, _ = run(calibration(), count)
    assert found is None


def test_a_target_below_the_template_is_refused_with_what_it_takes() -> None:
    found = calibrated(tokenizer(frozenset(), frozenset(), 12))
    assert words_for(found, 13) == 1
    with pytest.raises(ProfileError) as caught:
        words_for(found, 12)
    assert "alone takes 12 tokens" in caught.value.what


def test_the_words_are_plain_and_many_enough() -> None:
    assert len(set(WORDS)) == len(WORDS) >= 256
    assert all(re.fullmatch(r"[a-z]{2,8}", word) for word in WORDS)


def test_prompts_of_one_repeat_share_at_most_their_first_word() -> None:
    prompts = [prompt.split() for prompt in make_prompts(Vocabulary(WORDS[:16], WORDS), 64, 0, "r0", 200)]
    assert len({tuple(prompt[:2]) for prompt in prompts}) == 200
    assert len({prompt[0] for prompt in prompts[:16]}) == 16


def test_repeats_warm_up_and_seeds_all_have_their_own_prompts() -> None:
    parts = [(seed, part) for seed in (0, 1) for part in ("warmup", "r0", "r1")]
    prompts = [prompt for seed, part in parts for prompt in make_prompts(None, 8, seed, part, 50)]
    assert len(set(prompts)) == len(parts) * 50


def test_the_same_seed_gives_the_same_prompts_on_every_machine() -> None:
    assert make_prompts(None, 6, 0, "r0", 2) == [
        "lot arm ready school member walk",
        "fact rest person brother real good",
    ]
    assert prompt_text(WORDS, 4, 0, "a", 1) == prompt_text(WORDS, 4, 0, "a", 1) != prompt_text(WORDS, 4, 0, "a", 2)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4), st.integers(1, 400))
def test_prompts_are_different_or_refused(starters: int, words: int, words_each: int, count: int) -> None:
    known = Vocabulary(WORDS[:starters], WORDS[100 : 100 + words])
    room = starters * words ** (words_each - 1)
    if room < count:
        with pytest.raises(ProfileError, match="can't be made"):
            make_prompts(known, words_each, 0, "r0", count)
    else:
        prompts = make_prompts(known, words_each, 0, "r0", count)
        assert len(set(prompts)) == count
        assert {len(prompt.split()) for prompt in prompts} == {words_each}
