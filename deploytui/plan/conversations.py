"""Synthetic conversations of several turns, the same for every candidate. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deploytui.errors import ProfileError
from deploytui.plan.dataset import Message
from deploytui.plan.prompts import UNCOUNTED, Calibration, message_text

TURN_WORDS = 3
"""Words of the text that `turn_texts` gives to be counted."""


class Question(NamedTuple):
    """What one request asks."""

    conversation: int
    turn: int
    prompt: str | None = None
    messages: list[Message] | None = None
    tokens: int | None = None
    """What the prompt was made to be [tokens]; None when nobody knows."""


def turn_messages(known: Calibration) -> list[Message]:
    """The smallest conversation of two turns; less the template of one and `TURN_WORDS`, its tokens are a turn's."""
    word = known.vocabulary.starters[0]
    return [_message("user", word), _message("assistant", word), _message("user", word)]


def synthetic_conversations(
    found: Calibration | None,
    first_prompts: Iterator[str],
    prompts: Sequence[int],
    outputs: Sequence[int],
    turns: int,
    seed: int,
    part: str,
) -> Iterator[Question]:
    """Conversations of `turns` turns, each line with its whole history; lengths [tokens] of one entry a request.

    The answers in a history are made words of the asked length, not what the engine said: so every candidate gets the
    same bytes, and one that answers shortly is not asked less afterwards. A prompt length counts the first turn's
    whole prompt, and what each later question with its share of the template adds.
    """
    known = found.vocabulary if found else UNCOUNTED
    history: list[Message] = []
    total = 0
    for number, tokens in enumerate(prompts):
        conversation, turn = divmod(number, turns)
        if turn == 0:
            history, total = [_message("user", next(first_prompts))], tokens
        else:
            place = (part, conversation, turn)
            answer = message_text(known, outputs[number - 1], seed, *place, "answer")
            question = message_text(known, question_words(found, tokens), seed, *place, "question")
            history = [*history, _message("assistant", answer), _message("user", question)]
            total += outputs[number - 1] + tokens
        yield Question(conversation, turn, messages=history, tokens=total)


def question_words(found: Calibration | None, tokens: int) -> int:
    """How many words make a later question that adds `tokens`; ProfileError when the template leaves no room."""
    words = tokens - (found.turn_tokens if found else 0)
    if words < 1:
        raise ProfileError(
            f"A question of {tokens} tokens (workload.prompt_tokens) is too short: the chat template alone takes "
            f"{tokens - words} tokens for each further turn.",
            fix=f"Ask for more than {tokens - words} prompt_tokens, or set workload.turns to 1.",
        )
    return words


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
