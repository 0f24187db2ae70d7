"""The rows of a session before anything runs: what each candidate is, and how it differs from the baseline."""

from collections.abc import Sequence

from deploytui.plan.audit import Difference, baseline_of, differences, factors
from deploytui.plan.labels import PLAIN_NAMES, format_of, precision_of, quantization_of
from deploytui.plan.steps import run_order
from deploytui.profile.schema import Candidate, Profile
from deploytui.record.planned import PlannedCandidate

UNNAMED_FORMATS = frozenset({"safetensors", "pytorch"})
"""Formats that go without saying when the precision is known."""

UPPER = frozenset({"awq", "gptq", "bnb"})


def artifact_label(candidate: Candidate) -> str:
    """The model artifact in a word or two, such as `GGUF Q4_K_M`, `bf16` or `AWQ`; `unknown` when nothing tells."""
    format_, precision = format_of(candidate), precision_of(candidate)
    if format_ == "gguf":
        said = quantization_of(candidate) or precision or ""
        return f"GGUF {PLAIN_NAMES.get(said.lower(), said).upper()}".rstrip()
    word = (precision or "").upper() if precision in UPPER else precision or ""
    if format_ is None or (word and format_ in UNNAMED_FORMATS):
        return word or "unknown"
    name = format_ if format_ in UNNAMED_FORMATS else {"onnx": "ONNX", "tensorrt": "TensorRT"}.get(format_, format_)
    return f"{name} {word}".rstrip()


def planned_candidates(profile: Profile, names: Sequence[str]) -> tuple[PlannedCandidate, ...]:
    """The rows of the candidates in `names`, in the order they are measured; without a baseline nothing differs."""
    baseline = baseline_of(profile)
    by_name = {candidate.name: candidate for candidate in profile.candidates}
    return tuple(_planned(by_name[name], baseline) for name in run_order(profile, names))


def _planned(candidate: Candidate, baseline: Candidate | None) -> PlannedCandidate:
    changed = differences(baseline, candidate) if baseline else {}
    return PlannedCandidate(
        name=candidate.name,
        engine=candidate.engine,
        artifact=artifact_label(candidate),
        differs={field: shown_difference(pair) for field, pair in changed.items()},
        factors=factors(baseline, candidate) if baseline else (),
    )


def shown_difference(pair: Difference) -> str:
    """A difference as text, the baseline's value first; what is absent is the engine's default."""
    theirs, ours = ("default" if value is None else value for value in pair)
    return f"{theirs} → {ours}"
