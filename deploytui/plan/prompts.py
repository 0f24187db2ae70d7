"""Synthetic prompts: token-exact for one tokenizer, never alike, the same on every machine. Pure."""

from collections.abc import Generator, Iterator, Sequence

from msgspec import Struct

from deploytui.errors import ProfileError
from deploytui.plan.streams import stream
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
    turn_tokens: int = 0
    """What the chat template adds for each further turn of a conversation: an answer and the next question."""


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
            f"A prompt of {target_tokens} tokens (workload.prompt_tokens) is too short: the chat template alone takes "
            f"{found.overhead_tokens} tokens.",
            fix=f'Ask for more than {found.overhead_tokens} prompt_tokens, or use endpoint = "completions".',
        )
    return words


def prompt_text(words: Sequence[str], n_words: int, seed: int, *place: str | int) -> str:
    """A text of `n_words` words, the same for the same seed and place and another for any other."""
    source = stream(GENERATOR, seed, *place)
    return " ".join(words[int(source.random() * len(words))] for _ in range(n_words))


def message_text(known: Vocabulary, n_words: int, seed: int, *place: str | int) -> str:
    """A text of `n_words` words that stands alone in its message, so with a starter at its head."""
    head = prompt_text(known.starters, 1, seed, *place, "head")
    return f"{head} {prompt_text(known.words, n_words - 1, seed, *place)}".rstrip()


def varied_prompts(vocabulary: Vocabulary | None, lengths: Sequence[int], seed: int, part: str) -> Iterator[str]:
    """One prompt for each length [words], all different.

    Any two of a part differ from one of their first words on, so that no prefix cache answers for the engine;
    ProfileError when there are not that many of that length. Without a vocabulary the tokens are not exact.
    """
    known = vocabulary or UNCOUNTED
    starters = _shuffled(known.starters, seed, part, "first")
    words = _shuffled(known.words, seed, part, "then")
    width = _head_width(len(starters), len(words), len(lengths), min(lengths, default=1))
    for number, length in enumerate(lengths):
        head = _head(starters, words, number, width)
        tail = prompt_text(known.words, length - width, seed, part, number)
        yield f"{head} {tail}".rstrip()


def sharing_prompts(
    vocabulary: Vocabulary | None, lengths: Sequence[int], shared: Sequence[int], groups: int, seed: int, part: str
) -> Iterator[str]:
    """One prompt for each length [words], whose leading `shared` words are those of its group: number modulo `groups`.

    Behind them any two of a part differ as those of `varied_prompts` do; where that needs more words than are left,
    fewer are shared. A group's words are the same in all parts of the session, so that the warm-up leaves them in a
    prefix cache, as a system prompt in use is. ProfileError when prompts, or groups, can't be told apart.
    """
    known = vocabulary or UNCOUNTED
    width = _head_width(len(known.words), len(known.words), len(lengths), min(lengths, default=2) - 1)
    kept = [max(min(common, length - width), 1) for length, common in zip(lengths, shared, strict=True)]
    prefixes = [text.split() for text in varied_prompts(known, [max(kept, default=1)] * groups, seed, "shared")]
    words = _shuffled(known.words, seed, part, "then")
    for number, (length, common) in enumerate(zip(lengths, kept, strict=True)):
        head = _head(words, words, number, width)
        tail = prompt_text(known.words, length - common - width, seed, part, number)
        yield " ".join([*prefixes[number % groups][:common], head, tail]).rstrip()


def _shuffled(words: Sequence[str], seed: int, *place: str | int) -> list[str]:
    """The words in the order of a place."""
    source = stream(GENERATOR, seed, *place)
    return [word for _, word in sorted((source.random(), word) for word in words)]


def _head_width(starters: int, words: int, count: int, words_each: int) -> int:
    """How many leading words tell `count` prompts apart; ProfileError when `words_each` do not."""
    width, told_apart = 1, starters
    while told_apart < count and width <= words_each:
        width, told_apart = width + 1, told_apart * words
    if width > words_each:
        raise ProfileError(
            f"{count} different prompts of {words_each} words can't be made.",
            fix="Ask for more workload.prompt_tokens, or for fewer requests.",
        )
    return width


def _head(starters: Sequence[str], words: Sequence[str], number: int, width: int) -> str:
    """The leading words of one prompt: its number, with words for digits, the fastest first."""
    number, digit = divmod(number, len(starters))
    head = [starters[digit]]
    for _ in range(width - 1):
        number, digit = divmod(number, len(words))
        head.append(words[digit])
    return " ".join(head)
