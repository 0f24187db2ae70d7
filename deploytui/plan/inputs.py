"""What a workload's files hold, and whether that is enough for what it asks. Pure."""

from collections.abc import Iterator

from msgspec import Struct

from deploytui.errors import ProfileError
from deploytui.plan.dataset import Dataset
from deploytui.plan.parts import parts
from deploytui.plan.trace import Trace
from deploytui.profile.load_schema import TraceReplay
from deploytui.profile.schema import Workload


class Inputs(Struct, frozen=True, kw_only=True):
    """The files a workload names, read; None where it names none."""

    dataset: Dataset | None = None
    trace: Trace | None = None

    @property
    def dataset_sha256(self) -> str | None:
        """Of the dataset's file."""
        return self.dataset.sha256 if self.dataset else None

    @property
    def trace_sha256(self) -> str | None:
        """Of the trace's file."""
        return self.trace.sha256 if self.trace else None


NO_INPUTS = Inputs()


def lengths_from_trace(workload: Workload) -> bool:
    """Whether prompts and answers are as long as the trace says."""
    return isinstance(workload.load, TraceReplay) and workload.prompt_tokens is None and workload.dataset is None


def conversations(workload: Workload, requests: int) -> int:
    """How many synthetic conversations that many requests make; the last one may be shorter."""
    return -(-requests // workload.turns)


def check_inputs(workload: Workload, inputs: Inputs) -> None:
    """Raise ProfileError when the files can't give what the workload asks of them."""
    if inputs.dataset is not None:
        _check_dataset(workload, inputs.dataset)
    if inputs.trace is not None:
        _check_trace(workload, inputs.trace)


def _check_dataset(workload: Workload, dataset: Dataset) -> None:
    chat = next((item for item in dataset.items if item.prompt is None), None)
    if workload.endpoint == "completions" and chat is not None:
        raise ProfileError(
            f"The dataset {dataset.name!r}, {chat.place} has messages, and the completions endpoint takes a text.",
            fix='Set workload.endpoint = "chat", or use a dataset of {"prompt": "..."}.',
        )
    if workload.turns > 1 and all(len(item.asks) < 2 for item in dataset.items):
        raise ProfileError(
            f"workload.turns is {workload.turns}, and no item of the dataset {dataset.name!r} has a second turn.",
            fix="Remove turns, or use a dataset of conversations.",
        )


def _check_trace(workload: Workload, trace: Trace) -> None:
    # Conversations of a dataset may be shorter than asked, so that more of them arrive.
    needed = workload.requests if workload.dataset else conversations(workload, workload.requests)
    if len(trace.times_s) < needed:
        raise ProfileError(
            f"The trace {trace.name!r} has {len(trace.times_s)} lines, and workload.requests needs {needed}.",
            fix=f"Set workload.requests to {len(trace.times_s)} or less, or use a longer trace.",
        )
    if lengths_from_trace(workload) and trace.lengthless_line is not None:
        raise ProfileError(
            f"The trace {trace.name!r}, line {trace.lengthless_line} has no lengths, and the workload gives none.",
            fix="Add workload.prompt_tokens, or lengths to each line of the trace.",
        )


def input_notes(workload: Workload, inputs: Inputs) -> Iterator[str]:
    """What one should know of the files before the numbers are believed."""
    if (dataset := inputs.dataset) is not None:
        if dataset.skipped:
            yield f"workload.dataset: {dataset.skipped} conversations have no question and are left out."
        if (asked := sum(part.requests for part in parts(workload))) > _requests_in(workload, dataset):
            yield (
                f"workload.dataset: {len(dataset.items)} items for {asked} requests, warm-up and repeats together. "
                "Once all were asked they are asked again, and a prefix cache will answer part of them."
            )
    if inputs.trace is not None and inputs.trace.has_hashes and lengths_from_trace(workload):
        yield "workload.load: hash_ids of the trace are not followed, so its prompts share no prefix."


def _requests_in(workload: Workload, dataset: Dataset) -> int:
    return sum(item.requests(workload.turns) for item in dataset.items)
