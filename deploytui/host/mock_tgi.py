"""Text Generation Inference's own endpoint, as the mock engine plays it: its words in, its events out. Pure."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploytui.host import mock_script as script
else:
    import mock_script as script

PATHS = ("/generate", "/generate_stream")
END = {"id": 2, "text": "</s>", "logprob": -0.1, "special": True}
BUSY = {"error": "Model is overloaded", "error_type": "overloaded"}
BROKEN = {"error": "simulated failure", "error_type": "generation"}


def read_ask(body: dict[str, Any], *, stream: bool) -> script.Ask:
    """The request; RefusalError when it does not fit."""
    parameters = body.get("parameters") or {}
    text, limit = body.get("inputs"), parameters.get("max_new_tokens", 100)
    if not isinstance(text, str):
        raise script.RefusalError(422, "Input validation error: `inputs` must be a text")
    if parameters.get("temperature") == 0:
        raise script.RefusalError(422, "Input validation error: `temperature` must be strictly positive")
    if not isinstance(limit, int) or limit < 1:
        raise script.RefusalError(422, "Input validation error: `max_new_tokens` must be strictly positive")
    return script.Ask(
        chat=False,
        stream=stream,
        prompt=text,
        prompt_tokens=len(text.split()),
        max_tokens=limit,
        ignore_eos=False,
        include_usage=True,
    )


def beats(ask: script.Ask, said: argparse.Namespace, answers: dict[str, str]) -> Iterator[script.Beat]:
    """A streamed answer: an event a token, the last with the whole text and its details."""
    whole, finish = script.tokens(ask, said, answers)
    act, stop = script.interruption(said, len(whole))
    rows = [_token(place, text) for place, text in enumerate(whole if act is None else whole[:stop])]
    if finish == "stop" and act is None:
        rows.append(END)
    for place, row in enumerate(rows):
        last = act is None and place == len(rows) - 1
        event: dict[str, Any] = {"index": place + 1, "token": row, "generated_text": None, "details": None}
        if last:
            event["generated_text"] = "".join(whole)
            event["details"] = _details(ask, finish, len(rows))
        yield script.Beat(min(place, max(0, len(whole) - 1)), "event", event)
    if act is not None:
        yield script.Beat(max(0, stop - 1), act, BROKEN)


def answer(ask: script.Ask, said: argparse.Namespace, answers: dict[str, str]) -> dict[str, Any]:
    """A whole answer at once, with the prompt's tokens listed."""
    whole, finish = script.tokens(ask, said, answers)
    prefill = [{"id": place, "text": text, "logprob": None} for place, text in enumerate(ask.prompt.split())]
    details = {**_details(ask, finish, len(whole)), "prefill": prefill}
    return {"generated_text": "".join(whole), "details": details}


def _token(place: int, text: str) -> dict[str, Any]:
    return {"id": 100 + place, "text": text, "logprob": -0.5, "special": False}


def _details(ask: script.Ask, finish: str, count: int) -> dict[str, Any]:
    reason = "length" if finish == "length" else "eos_token"
    return {"finish_reason": reason, "generated_tokens": count, "seed": None, "input_length": ask.prompt_tokens}
