"""Whether an engine can load a model, and if not, why: what the files say against what the engine can use."""

from collections.abc import Iterator

from deploytui.artifact.facts import ModelFacts
from deploytui.check.quantized import quantization_failure
from deploytui.check.told import knows, told_failure
from deploytui.engine.protocol import Engine, PreparationPlan, Probed
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure

RUNS_CODE = frozenset({"safetensors", "pytorch"})
"""Formats whose config.json can point at code that an engine would run."""

DTYPE_NAMES = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "half": "float16", "f32": "float32"} | {
    "fp32": "float32",
    "float": "float32",
}
FOLDER_FORMATS = frozenset({"safetensors", "pytorch", "onnx", "tensorrt"})


def load_failure(
    engine: Engine, candidate: Candidate, facts: ModelFacts, probed: Probed | None = None
) -> Failure | None:
    """Why this engine can't load this model as the candidate asks; None when it may.

    `probed` adds what the installed engine told of itself: architectures, operators, its version.
    """
    plan = engine.preparation(candidate, facts.format)
    return next(_failures(engine, candidate, facts, plan, probed), None)


def _failures(
    engine: Engine, candidate: Candidate, facts: ModelFacts, plan: PreparationPlan | None, probed: Probed | None
) -> Iterator[Failure | None]:
    yield from facts.faults
    tests = (
        _format(engine, candidate, facts, plan),
        _pickle(candidate, facts),
        told_failure(engine, candidate, facts, probed) if plan is None else None,
        _custom_code(engine, candidate, facts, plan, probed),
        _one_file(candidate, facts),
        quantization_failure(engine, candidate, facts) if plan is None else None,
        _dtype(engine, candidate),
        _kv_cache_dtype(engine, candidate),
        _tensorrt(candidate, facts),
        _genai(candidate, facts),
    )
    yield from (failure for failure in tests if failure is not None)


def source_failure(candidate: Candidate, facts: ModelFacts) -> Failure | None:
    """Why nothing may be made of this model: its faults, pickles and code that the profile does not allow."""
    if facts.faults:
        return facts.faults[0]
    code = facts.custom_code and not candidate.trust_remote_code and facts.format in RUNS_CODE
    return _pickle(candidate, facts) or (_code_refused(candidate, "its preparation") if code else None)


def load_notes(candidate: Candidate, facts: ModelFacts) -> tuple[str, ...]:
    """What a reader should know of the model and the candidate's words about it."""
    return (*_notes(candidate, facts), *facts.notes)


def _notes(candidate: Candidate, facts: ModelFacts) -> Iterator[str]:
    declared, found = candidate.quantization, facts.quantization
    if declared and found and declared.lower() != found.lower():
        yield f"quantization: the profile says {declared}, the file says {found}."
    if facts.pickled and candidate.allow_pickle:
        yield "The weights are pickles, which can run code when they are loaded: allow_pickle allows it."
    if facts.custom_code and candidate.trust_remote_code:
        yield "The model brings Python code of its own: trust_remote_code allows it to run."
    if facts.tokenizer.kind and not facts.tokenizer.template_sha256:
        yield 'The model has no chat template: endpoint = "chat" needs one of the engine\'s own.'
    window, layers = facts.attention.sliding_window, facts.attention.sliding_layers
    if window and layers:
        yield f"context: {layers} layers see only the last {window} tokens."


def _format(engine: Engine, candidate: Candidate, facts: ModelFacts, plan: PreparationPlan | None) -> Failure | None:
    found = plan.format if plan is not None else facts.format
    if found and engine.formats and found not in engine.formats:
        return Failure(
            kind="unsupported_format",
            what=f"{engine.title} can't load {candidate.model}: it is {found}.",
            fix=f"It loads {', '.join(sorted(engine.formats))}.",
        )
    if candidate.format and facts.format and candidate.format not in (facts.format, found):
        return Failure(
            kind="invalid_config",
            what=f"The candidate says format = {candidate.format!r}, and {candidate.model} is {facts.format}.",
            fix="Correct format or model.",
        )
    return None


def _pickle(candidate: Candidate, facts: ModelFacts) -> Failure | None:
    if not facts.pickled or candidate.allow_pickle:
        return None
    return Failure(
        kind="not_allowed",
        what=f"The weights of {candidate.model} are pickles, which can run any code when they are loaded.",
        fix="Take a model with safetensors, or set allow_pickle = true if you trust where it comes from.",
    )


def _custom_code(
    engine: Engine, candidate: Candidate, facts: ModelFacts, plan: PreparationPlan | None, probed: Probed | None
) -> Failure | None:
    """Only engines that read such checkpoints would run the code, or know the model without it."""
    if not facts.custom_code or candidate.trust_remote_code or facts.format not in RUNS_CODE:
        return None
    if plan is None and not engine.formats & RUNS_CODE:
        return None
    if knows(facts, probed):
        return None
    return _code_refused(candidate, engine.title)


def _code_refused(candidate: Candidate, who: str) -> Failure:
    return Failure(
        kind="not_allowed",
        what=f"{candidate.model} brings Python code of its own, which {who} would run.",
        why="config.json or tokenizer_config.json has an auto_map.",
        fix="Read that code, and set trust_remote_code = true if you trust it.",
    )


def _one_file(candidate: Candidate, facts: ModelFacts) -> Failure | None:
    if facts.whole or facts.format not in FOLDER_FORMATS:
        return None
    return Failure(
        kind="invalid_config",
        what=f"{candidate.model} is one file of a model; engines load its folder.",
        fix="Name the folder with model.",
    )


def _dtype(engine: Engine, candidate: Candidate) -> Failure | None:
    known = engine.capabilities.dtypes
    if candidate.dtype is None or known is None or candidate.dtype == "auto":
        return None
    asked = candidate.dtype.lower()
    if {asked, DTYPE_NAMES.get(asked, asked)} & {
        word for name in known for word in (name, DTYPE_NAMES.get(name, name))
    }:
        return None
    return Failure(
        kind="unsupported_dtype",
        what=f"{engine.title} has no dtype {candidate.dtype!r}.",
        fix=f"It has {', '.join(sorted(known))}.",
    )


def _kv_cache_dtype(engine: Engine, candidate: Candidate) -> Failure | None:
    asked, known = candidate.settings.kv_cache_dtype, engine.capabilities.kv_cache_dtypes
    if asked is None or known is None or asked in known:
        return None
    return Failure(
        kind="unsupported_setting",
        what=f"{engine.title} has no settings.kv_cache_dtype {asked!r}.",
        fix=f"It has {', '.join(sorted(known))}.",
    )


def _tensorrt(candidate: Candidate, facts: ModelFacts) -> Failure | None:
    """An engine is built for a number of GPUs, a context and a batch; it runs with no other, or no more."""
    built = facts.tensorrt
    if built is None:
        return None
    asked = candidate.settings
    for key, wanted, has in (
        ("tensor_parallel", asked.tensor_parallel, built.tensor_parallel),
        ("pipeline_parallel", asked.pipeline_parallel, built.pipeline_parallel),
    ):
        if wanted and has and wanted != has:
            return _rebuild(candidate, key, wanted, f"{has}")
    for key, wanted, has in (
        ("max_model_len", asked.max_model_len, built.max_seq_len),
        ("max_num_seqs", asked.max_num_seqs, built.max_batch_size),
    ):
        if wanted and has and wanted > has:
            return _rebuild(candidate, key, wanted, f"at most {has}")
    return None


def _rebuild(candidate: Candidate, key: str, wanted: int, has: str) -> Failure:
    return Failure(
        kind="invalid_config",
        what=f"settings.{key} is {wanted}, and the engine {candidate.model} was built for {has}.",
        fix=f"Set {key} to what it was built for, or build it again.",
    )


def _genai(candidate: Candidate, facts: ModelFacts) -> Failure | None:
    if facts.onnx is None or facts.onnx.genai:
        return None
    return Failure(
        kind="missing_file",
        what=f"{candidate.model} has no genai_config.json, without which ONNX Runtime GenAI loads nothing.",
        fix="Make it from the safetensors with prepare.",
    )
