"""How long the requests of a part are, before anything is sent. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import cycle, islice
from typing import NamedTuple

from deploytui.plan.dataset import Dataset, taken
from deploytui.plan.inputs import NO_INPUTS, Inputs, lengths_from_trace
from deploytui.plan.lengths import draw_lengths, fixed
from deploytui.plan.parts import Part, parts
from deploytui.plan.streams import stream
from deploytui.profile.load_schema import Lengths
from deploytui.profile.schema import Workload

ORDER = "dataset/1"
"""Names this way of taking items; changes when the same seed takes others."""

BYTES_A_TOKEN = 2
"""Fewer than any usual tokenizer needs on average, so that room kept by it is enough."""


def common_output_tokens(workload: Workload, inputs: Inputs = NO_INPUTS) -> int:
    """The asked output length [tokens] of all requests; the longest where they differ and each says its own."""
    if has_common_output(workload, inputs) and (one := fixed(workload.output_tokens)) is not None:
        return one
    return max((extent.longest_output for extent in _extents(workload, inputs)), default=1)


def asked_tokens(workload: Workload, part: Part, inputs: Inputs = NO_INPUTS) -> Mapping[int, int]:
    """The asked output length [tokens] of each request of a part by its id; empty where all ask for the common one."""
    return {} if has_common_output(workload, inputs) else dict(enumerate(output_lengths(workload, part, inputs)))


def has_common_output(workload: Workload, inputs: Inputs = NO_INPUTS) -> bool:
    """Whether all answers are asked to be of one length."""
    own = inputs.dataset is not None and any(item.max_tokens is not None for item in inputs.dataset.items)
    return fixed(workload.output_tokens) is not None and not lengths_from_trace(workload) and not own


def prompt_lengths(workload: Workload, part: Part, inputs: Inputs = NO_INPUTS) -> list[int] | None:
    """The prompt tokens of each request of a part, in order; None for a dataset, whose tokens nobody knows.

    In a conversation they are those of the first turn's prompt, and what each later turn adds to its history.
    """
    if lengths_from_trace(workload):
        assert inputs.trace is not None
        return _first(inputs.trace.prompt_tokens, part.requests)
    if workload.prompt_tokens is None:
        return None
    return draw_lengths(workload.prompt_tokens, part.requests, workload.seed, "prompt", part.draw)


def output_lengths(workload: Workload, part: Part, inputs: Inputs = NO_INPUTS) -> list[int]:
    """The asked output tokens of each request of a part, in order; an item's own go before the workload's."""
    if lengths_from_trace(workload):
        assert inputs.trace is not None
        return _first(inputs.trace.output_tokens, part.requests)
    drawn = draw_lengths(workload.output_tokens, part.requests, workload.seed, "output", part.draw)
    if inputs.dataset is None or all(item.max_tokens is None for item in inputs.dataset.items):
        return drawn
    own = (
        item.max_tokens
        for place in items_of(workload, part, inputs.dataset)
        for item in [inputs.dataset.items[place]]
        for _ in range(item.requests(workload.turns))
    )
    return [tokens or usual for tokens, usual in zip(own, drawn, strict=False)]


def items_of(workload: Workload, part: Part, dataset: Dataset) -> list[int]:
    """Which items of a dataset a part asks, in its order; other parts ask others as long as there are enough.

    A part that is none of the session's, such as a trial of another rate, has an order of its own.
    """
    known = parts(workload)
    names = [one.name for one in known]
    mine = part.name in names
    source = stream(ORDER, workload.seed) if mine else stream(ORDER, workload.seed, part.name)
    order = sorted(range(len(dataset.items)), key=[source.random() for _ in dataset.items].__getitem__)
    until = known[: names.index(part.name)] if mine else ()
    counts = [*(one.requests for one in until), part.requests]
    return taken(dataset.items, order, counts, workload.turns)[-1]


def longest_request(workload: Workload, inputs: Inputs = NO_INPUTS) -> int:
    """Prompt and answer of the longest request, from the lengths that will really be asked [tokens].

    What is not known counts 0: the prompts of a dataset.
    """
    return max((extent.request for extent in _extents(workload, inputs)), default=0)


def longest_prompt(workload: Workload, inputs: Inputs = NO_INPUTS) -> int | None:
    """The longest of the drawn prompt lengths [tokens]; None for a dataset."""
    return max((extent.longest_prompt for extent in _extents(workload, inputs)), default=0) or None


def shortest_prompt(workload: Workload, inputs: Inputs = NO_INPUTS) -> int | None:
    """The shortest of the drawn prompt lengths [tokens]; None for a dataset."""
    return min((extent.shortest_prompt for extent in _extents(workload, inputs)), default=0) or None


def room_needed(workload: Workload, inputs: Inputs = NO_INPUTS) -> int:
    """Context that surely holds the longest request [tokens]; for a dataset told from the bytes of its texts."""
    if inputs.dataset is None:
        return longest_request(workload, inputs)
    longest = max(_bytes(item.prompt or "", item.messages) for item in inputs.dataset.items)
    return longest // BYTES_A_TOKEN + common_output_tokens(workload, inputs)


def _bytes(prompt: str, messages: Sequence[Mapping[str, object]]) -> int:
    return len(prompt.encode()) + sum(len(str(message.get("content") or "").encode()) for message in messages)


class _Extent(NamedTuple):
    """How long the requests of a part get [tokens]; prompts of a dataset count 0."""

    request: int
    longest_prompt: int
    shortest_prompt: int
    longest_output: int


def _extents(workload: Workload, inputs: Inputs) -> Iterator[_Extent]:
    """Of each of the parts; no two of them have the same lengths."""
    for part in {part.draw: part for part in parts(workload) if part.requests}.values():
        if workload.prompt_tokens is not None and inputs.dataset is None:
            yield _drawn_extent(
                workload.prompt_tokens,
                workload.output_tokens,
                part.requests,
                workload.turns,
                workload.seed,
                part.draw,
            )
        else:
            outputs = output_lengths(workload, part, inputs)
            yield _extent(prompt_lengths(workload, part, inputs) or [0] * len(outputs), outputs, workload.turns)


@lru_cache(maxsize=256)
def _drawn_extent(prompt: Lengths, output: Lengths, count: int, turns: int, seed: int, draw: str) -> _Extent:
    """Remembered, because many ask and a million draws take a second."""
    drawn = [
        draw_lengths(lengths, count, seed, what, draw) for what, lengths in (("prompt", prompt), ("output", output))
    ]
    return _extent(drawn[0], drawn[1], turns)


def _extent(prompts: Sequence[int], outputs: Sequence[int], turns: int) -> _Extent:
    longest = history = 0
    for number, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        history = (0 if number % turns == 0 else history) + prompt + output
        longest = max(longest, history)
    return _Extent(longest, max(prompts), min(prompts), max(outputs))


def _first(lengths: Sequence[int], count: int) -> list[int]:
    """The first `count` lengths of a trace, over again when it has fewer."""
    return list(islice(cycle(lengths), count))
