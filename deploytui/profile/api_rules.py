"""What goes with `api = "tgi"`: the own endpoint of Text Generation Inference knows fewer words than OpenAI's."""

from collections.abc import Iterator

from deploytui.profile.faults import Fault
from deploytui.profile.schema import Profile

PARAMETERS = frozenset(
    {
        *("do_sample", "temperature", "top_p", "top_k", "typical_p", "repetition_penalty", "frequency_penalty"),
        *("seed", "stop", "watermark", "truncate", "grammar", "adapter_id", "return_full_text", "top_n_tokens"),
    }
)
"""Fields of a request's `parameters`, beside those that a load sets itself."""

ENGINES = ("tgi", "openai", "command", "mock")
"""Whose server may be TGI, or play it."""


def api_faults(profile: Profile) -> Iterator[Fault]:
    """What a candidate with TGI's own endpoint can't be asked."""
    for index, candidate in enumerate(profile.candidates):
        if candidate.api == "tgi":
            yield from _own_api(profile, f"candidates[{index}].api", candidate.engine)


def _own_api(profile: Profile, path: str, engine: str) -> Iterator[Fault]:
    workload, sampling = profile.workload, profile.workload.sampling
    if engine not in ENGINES:
        yield Fault(path, f'is "tgi", and {engine} has no such endpoint', "Remove api.")
    if workload.endpoint == "chat":
        fix = 'Set api = "openai", where TGI serves chat too, or workload.endpoint = "completions".'
        yield Fault(path, 'is "tgi", whose own endpoint takes no messages', fix)
    if sampling.ignore_eos:
        fix = "Set workload.sampling.ignore_eos = false: answers then end where the model ends them."
        yield Fault(path, 'is "tgi", whose own endpoint can\'t be told to go on behind the end of an answer', fix)
    if sampling.min_p is not None:
        yield Fault(path, 'is "tgi", whose own endpoint has no min_p', "Remove workload.sampling.min_p.")
    for key in workload.body:
        if key not in PARAMETERS:
            yield Fault(f"workload.body.{key}", "is no parameter of TGI's own endpoint", f"Remove it, or {path}.")
