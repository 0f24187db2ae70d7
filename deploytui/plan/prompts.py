"""Synthetic prompts: token-exact for one tokenizer, never alike, the same on every machine. Pure."""

import hashlib
import random
from collections.abc import Generator, Sequence

from msgspec import Struct

from deploytui.errors import ProfileError
from deploytui.plan.words import WORDS

GENERATOR = "words/1"
"""Names this way of making prompts; changes when the same seed gives other texts."""

TEMPLATE_ROOM = 512
"""Tokens that a chat template and a short question may take together, where nothing was counted yet."""

STARTERS_TRIED = 16
"""Words tried at the start of a text, each with a call of its own."""

FEWEST_WORDS = 16
"""With fewer one-token words, tokens do not follow words at all."""

WORDS_AT_ONCE = 16
"""Words counted in one text when nobody says how long it may be; an engine's context may be as short as a prompt."""


class Vocabulary(Struct, frozen=True):
    """Words that are one token each: `starters` at the start of a text, `words` behind another word."""

    starters: tuple[str, ...]
    words: tuple[str, ...]


UNCOUNTED = Vocabulary(WORDS, WORDS)
"""All words, where no tokenizer was asked."""


class Calibration(Struct, frozen=True):
    """What a tokenizer makes of our words: a text of n of them is `overhead_tokens` + n tokens."""

    vocabulary: Vocabulary
    overhead_tokens: int
    """What the chat template and the special tokens add."""


def calibration(longest_tokens: int | None = None) -> Generator[str, int, Calibration | None]:
    """Yields texts, is sent the tokens of each, returns the calibration; None when tokens do not follow words.

    No text is longer than about `longest_tokens`, so that an engine with a short context can count it.
    """
    tried: dict[str, int] = {}
    for word in WORDS[:STARTERS_TRIED]:
        tried[word] = yield word
    alone = min(tried.values())
    starters = tuple(word for word, count in tried.items() if count == alone)
    at_once = WORDS_AT_ONCE if longest_tokens is None else max(1, longest_tokens - alone)
    found: list[str] = []
    for start in range(0, len(WORDS), at_once):
        found += yield from _single(starters[0], alone, WORDS[start : start + at_once])
    if len(found) < FEWEST_WORDS:
        return None
    return Calibration(Vocabulary(starters, tuple(found)), alone - 1)


def _single(head: str, alone: int, words: Sequence[str]) -> Generator[str, int, Sequence[str]]:
    """Those of the words that add one token behind `head`, found by halving; `alone` are the tokens of `head`."""
    count = yield " ".join((head, *words))
    if count == alone + len(words):
        return words
    if len(words) == 1:
        return ()
    middle = len(words) // 2
    first = yield from _single(head, alone, words[:middle])
    second = yield from _single(head, alone, words[middle:])
    return (*first, *second)


def words_for(found: Calibration, target_tokens: int) -> int:
    """How many words make a prompt of `target_tokens`; ProfileError when the template leaves no room for one."""
    words = target_tokens - found.overhead_tokens
    if words < 1:
        raise ProfileError(
            f"workload.prompt_tokens = {target_tokens} is too short: the chat template alone takes "
            f"{found.overhead_tokens} tokens.",
            fix=f'Ask for more than {found.overhead_tokens} prompt_tokens, or use endpoint = "completions".',
        )
    return words


def prompt_text(words: Sequence[str], n_words: int, seed: int, *place: str | int) -> str:
    """A text of `n_words` words, the same for the same seed and place and another for any other."""
    stream = _stream(seed, *place)
    return " ".join(words[int(stream.random() * len(words))] for _ in range(n_words))


def make_prompts(vocabulary: Vocabulary | None, words_each: int, seed: int, part: str, count: int) -> list[str]:
    """`count` different prompts of `words_each` words for a part of the session, such as `warmup` or `r0`.

    Any two of a part differ from one of their first words on, so that no prefix cache answers for the engine;
    ProfileError when there are not that many of that length. Without a vocabulary the tokens are not exact.
    """
    known = vocabulary or UNCOUNTED
    starters = _shuffled(known.starters, seed, part, "first")
    words = _shuffled(known.words, seed, part, "then")
    width = _head_width(len(starters), len(words), count, words_each)
    if width > words_each:
        raise ProfileError(
            f"{count} different prompts of {words_each} words can't be made.",
            fix="Ask for more workload.prompt_tokens, or for fewer requests.",
        )
    prompts = []
    for number in range(count):
        head = _head(starters, words, number, width)
        tail = prompt_text(known.words, words_each - width, seed, part, number)
        prompts.append(f"{head} {tail}".rstrip())
    return prompts


def _stream(seed: int, *place: str | int) -> random.Random:
    """Random numbers of a place; only its `random()` is promised to stay the same in later Pythons."""
    key = "/".join(str(step) for step in (GENERATOR, seed, *place))
    return random.Random(int.from_bytes(hashlib.sha256(key.encode()).digest(), "big"))


def _shuffled(words: Sequence[str], seed: int, *place: str | int) -> list[str]:
    """The words in the order of a place."""
    stream = _stream(seed, *place)
    return [word for _, word in sorted((stream.random(), word) for word in words)]


def _head_width(starters: int, words: int, count: int, words_each: int) -> int:
    """How many leading words tell `count` prompts apart; more than `words_each` when nothing does."""
    width, told_apart = 1, starters
    while told_apart < count and width <= words_each:
        width, told_apart = width + 1, told_apart * words
    return width


def _head(starters: Sequence[str], words: Sequence[str], number: int, width: int) -> str:
    """The leading words of one prompt: its number, with words for digits, the fastest first."""
    number, digit = divmod(number, len(starters))
    head = [starters[digit]]
    for _ in range(width - 1):
        number, digit = divmod(number, len(words))
        head.append(words[digit])
    return " ".join(head)
