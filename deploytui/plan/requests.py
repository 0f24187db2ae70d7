"""The requests of one part of a session, one after the other: what each asks, how much, and when. Pure."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from deploytui.plan.arrivals import arrivals
from deploytui.plan.asked import has_common_output, items_of, output_lengths, prompt_lengths
from deploytui.plan.conversations import Question, synthetic_conversations
from deploytui.plan.dataset import Dataset, Message
from deploytui.plan.inputs import NO_INPUTS, Inputs, conversations
from deploytui.plan.parts import Part
from deploytui.plan.prompts import Calibration, sharing_prompts, varied_prompts, words_for
from deploytui.profile.schema import Workload


class Request(Struct, frozen=True, kw_only=True):
    """One request; the fields but `tokens` are those of a line of a prompts file."""

    id: int
    prompt: str | None = None
    messages: list[Message] | None = None
    max_tokens: int | None = None
    """None where all ask for the same number."""
    at_s: float | None = None
    """When it shall be sent, from the start [s]; None in a closed loop, and for a conversation's later turns."""
    conversation: int | None = None
    """None unless the workload has several turns."""
    tokens: int | None = None
    """What the prompt was made to be [tokens]; None when nobody knows."""


def part_requests(
    workload: Workload, part: Part, found: Calibration | None, inputs: Inputs = NO_INPUTS
) -> Iterator[Request]:
    """The requests of a part, made as they are asked for; ProfileError when prompts of those lengths can't be made.

    Without a calibration synthetic prompts have as many words as they should have tokens. In an open loop with
    several turns it is the conversations that arrive: a later turn follows its answer, whatever the rate.
    """
    outputs = output_lengths(workload, part, inputs)
    questions = _asked_questions(workload, part, found, inputs, outputs)
    times = _times(workload, part, inputs)
    common = has_common_output(workload, inputs)
    # An item's turns may be more than the part still wants: the outputs end where it does.
    for number, (output, question) in enumerate(zip(outputs, questions, strict=False)):
        yield Request(
            id=number,
            prompt=question.prompt,
            messages=question.messages,
            max_tokens=None if common else output,
            at_s=times[question.conversation] if times and question.turn == 0 else None,
            conversation=question.conversation if workload.turns > 1 else None,
            tokens=question.tokens,
        )


def _times(workload: Workload, part: Part, inputs: Inputs) -> tuple[float, ...] | None:
    """When each request, or conversation, of a part arrives."""
    if part.load is None:
        return None
    count = conversations(workload, part.requests)
    if inputs.dataset is not None:
        count = len(items_of(workload, part, inputs.dataset))
    trace_times_s = inputs.trace.times_s if inputs.trace else ()
    return arrivals(part.load, count, workload.seed, part.draw, trace_times_s=trace_times_s)


def _asked_questions(
    workload: Workload, part: Part, found: Calibration | None, inputs: Inputs, outputs: Sequence[int]
) -> Iterator[Question]:
    if inputs.dataset is not None:
        return _from_dataset(workload, part, inputs.dataset)
    lengths = prompt_lengths(workload, part, inputs)
    assert lengths is not None, "a workload without dataset has lengths"
    firsts = lengths[:: workload.turns]
    texts = _texts(workload, found, firsts, part.name)
    if workload.turns == 1:
        return (Question(number, 0, prompt=text, tokens=firsts[number]) for number, text in enumerate(texts))
    return synthetic_conversations(found, texts, lengths, outputs, workload.turns, workload.seed, part.name)


def _from_dataset(workload: Workload, part: Part, dataset: Dataset) -> Iterator[Question]:
    for number, place in enumerate(items_of(workload, part, dataset)):
        item = dataset.items[place]
        for turn in range(item.requests(workload.turns)):
            yield Question(number, turn, prompt=item.prompt, messages=item.question(turn, workload.turns))


def _texts(workload: Workload, found: Calibration | None, tokens: Sequence[int], part: str) -> Iterator[str]:
    """Texts whose prompts have those tokens."""
    words = [words_for(found, one) if found else one for one in tokens]
    vocabulary = found.vocabulary if found else None
    if workload.shared_prefix is None:
        return varied_prompts(vocabulary, words, workload.seed, part)
    shared = [round(workload.shared_prefix.ratio * one) for one in tokens]
    return sharing_prompts(vocabulary, words, shared, workload.shared_prefix.groups, workload.seed, part)
