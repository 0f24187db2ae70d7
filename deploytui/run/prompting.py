"""The session's prompts: counted once with the first engine that serves, written once, sent to every candidate."""

import os
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from anyio import to_thread
from msgspec import Struct

from deploytui.load.orders import Prompt
from deploytui.plan.asked import longest_prompt, shortest_prompt
from deploytui.plan.conversations import TURN_WORDS, question_words, turn_messages
from deploytui.plan.dataset import Message
from deploytui.plan.inputs import NO_INPUTS, Inputs, lengths_from_trace
from deploytui.plan.lengths import fixed
from deploytui.plan.parts import Part, parts
from deploytui.plan.prompts import Calibration, Vocabulary, calibration, words_for
from deploytui.plan.requests import Request, part_requests
from deploytui.plan.workload import draw
from deploytui.profile.schema import Workload
from deploytui.record.events import PromptsMade
from deploytui.record.facts import Sidecar
from deploytui.run.doors import Answer, Door, ask_one, one_token_body, prompt_tokens
from deploytui.run.recorder import now_ns
from deploytui.run.sidecars import sidecar
from deploytui.session.folder import SessionFolder

VERIFIED = 2
"""Prompts that are counted again after they were made; the measured requests verify all."""

Said = str | Sequence[Message]
"""What a prompt is: a text, or messages."""


class Uncounted(Exception):
    """The engine tells no prompt tokens."""


class Counter(Struct, frozen=True):
    """An engine that is asked how many tokens prompts have."""

    door: Door
    endpoint: str
    model: str
    timeout_s: float
    api: str = "openai"


async def _count(counter: Counter, said: Said) -> int:
    path, body = one_token_body(counter.endpoint, counter.model, said if isinstance(said, str) else "", counter.api)
    if not isinstance(said, str):
        body["messages"] = list(said)
    if counter.api == "tgi":
        body["parameters"] |= {"details": True, "decoder_input_details": True}
    answer = await ask_one(counter.door, path, body, counter.timeout_s)
    count = own_prompt_tokens(answer) if counter.api == "tgi" else prompt_tokens(answer)
    if count is None:
        raise Uncounted
    return count


def own_prompt_tokens(answer: Answer) -> int | None:
    """Tokens of the prompt, as TGI's own endpoint lists them; None where it does not."""
    match answer:
        case {"details": {"prefill": [_, *_] as prefill}}:
            return len(prefill)
        case _:
            return None


async def calibrate(counter: Counter, workload: Workload, inputs: Inputs = NO_INPUTS) -> Calibration | None:
    """Which words are one token for this engine, and what its template adds; None when that can't be told."""
    steps = calibration(longest_prompt(workload, inputs))
    shortest = shortest_prompt(workload, inputs)
    try:
        text = next(steps)
        count = await _count(counter, text)
        # One word with its template tells whether any prompt of that length can be made: said before all is counted.
        words_for(Calibration(Vocabulary((), ()), count - 1), shortest or count)
        while True:
            text = steps.send(count)
            count = await _count(counter, text)
    except StopIteration as done:
        found: Calibration | None = done.value
    except Uncounted:
        return None
    if found is None or workload.turns == 1:
        return found
    count = await _count(counter, turn_messages(found))
    found = msgspec.structs.replace(found, turn_tokens=max(count - found.overhead_tokens - TURN_WORDS, 0))
    question_words(found, shortest or count)
    return found


def part_path(folder: SessionFolder, part: str) -> Path:
    """Where the prompts of `warmup`, of a repeat such as `r0`, or of one at a point such as `p1.r0` lie."""
    return folder.path / "prompts" / f"{part}.jsonl"


async def prepare_prompts(
    door: Door,
    folder: SessionFolder,
    workload: Workload,
    model: str,
    candidate: str,
    timeout_s: float,
    inputs: Inputs = NO_INPUTS,
    api: str = "openai",
) -> tuple[PromptsMade, Calibration | None]:
    """Make and write all prompts of the session; what was found out about the tokenizer makes further parts alike."""
    counter = Counter(door, workload.endpoint, model, timeout_s, api)
    is_synthetic = workload.dataset is None
    found = await calibrate(counter, workload, inputs) if is_synthetic else None
    files, last = await to_thread.run_sync(_write_all, folder, workload, found, inputs)
    return PromptsMade(
        at_ns=now_ns(),
        draw=draw([file.sha256 for file in files]),
        files=files,
        tokenizer_of=candidate if found else None,
        target_tokens=fixed(workload.prompt_tokens) if workload.turns == 1 else None,
        overhead_tokens=found.overhead_tokens if found else None,
        exact=found is not None and await _verified(counter, last),
    ), found


def write_part(
    folder: SessionFolder, workload: Workload, part: Part, found: Calibration | None, inputs: Inputs = NO_INPUTS
) -> Sidecar:
    """Make and write the prompts of one part, on disk when this returns; ProfileError when they can't be made."""
    return _written(folder, part, part_requests(workload, part, found, inputs))


def is_exact_expected(workload: Workload) -> bool:
    """Whether the prompts are made to have a number of tokens, so that failing to is worth a word."""
    return workload.prompt_tokens is not None or lengths_from_trace(workload)


async def _verified(counter: Counter, made: Sequence[Request]) -> bool:
    """Whether the engine counts what prompts were made to be."""
    asked = [(request.prompt or request.messages or "", request.tokens) for request in made]
    return all([await _count(counter, said) == tokens for said, tokens in asked])


def _write_all(
    folder: SessionFolder, workload: Workload, found: Calibration | None, inputs: Inputs
) -> tuple[tuple[Sidecar, ...], Sequence[Request]]:
    """Write every part; also the last requests of the first measured one."""
    files, last = [], deque[Request](maxlen=VERIFIED)
    for number, part in enumerate(parts(workload)):
        requests = part_requests(workload, part, found, inputs)
        files.append(_written(folder, part, _keeping(requests, last) if number == 1 else requests))
    return tuple(files), last


def _keeping(requests: Iterable[Request], last: deque[Request]) -> Iterable[Request]:
    for request in requests:
        last.append(request)
        yield request


def _written(folder: SessionFolder, part: Part, requests: Iterable[Request]) -> Sidecar:
    """One part on disk, a line at a time: all prompts of a session may be more than memory holds."""
    path = part_path(folder, part.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.writelines(encode(_line(request)) + b"\n" for request in requests)
        file.flush()
        os.fsync(file.fileno())
    return sidecar(path, folder.path, part.requests)


def _line(request: Request) -> Prompt:
    return Prompt(
        id=request.id,
        prompt=request.prompt,
        messages=request.messages,
        max_tokens=request.max_tokens,
        at_s=request.at_s,
        conversation=request.conversation,
    )
