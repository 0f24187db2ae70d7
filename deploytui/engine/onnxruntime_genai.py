"""ONNX Runtime GenAI: a library, served by our own host; what is no ONNX yet is built by its model builder first."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from deploytui.engine.adapter import Adapter, common_judgement, host_script, loopback_url, misfit
from deploytui.engine.environments import environment_python
from deploytui.engine.hosted import KEY, MEMORY, METRICS, PROPS, from_props
from deploytui.engine.protocol import Capabilities, Launch, Place, PreparationPlan, Probe, Probed
from deploytui.engine.words import (
    Switch,
    Vocabulary,
    folders,
    gpu_environment,
    objections,
    packages,
    place_of,
    probe_in,
    python_of,
    setup_words,
)
from deploytui.profile.places import user_path
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

CPU, CUDA = "onnxruntime-genai", "onnxruntime-genai-cuda"
"""Its two distributions, and what setup-engine calls their environments."""

MODULE = "onnxruntime_genai"
BUILDER = "onnxruntime_genai.models.builder"
BUILDER_PACKAGES = (CPU, "onnx", "onnx-ir", "torch", "transformers")
CUDA_CALL = f"{MODULE}:is_cuda_available"
CUDA_SCRIPT = "probe_onnx_cuda.py"
SOURCES = frozenset({"safetensors", "pytorch"})
"""Formats the builder reads."""

PRECISIONS = ("int4", "int8", "bf16", "fp16", "fp32")
USUAL = "int4"
"""The precision of a build where the candidate names none."""

HALF = ("bf16", "fp16")
"""Precisions whose graphs the builder makes for the CPU, too, and which the runtime can't run there."""

DTYPES = {
    **{"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"},
    **{"fp32": "fp32", "fp16": "fp16", "bf16": "bf16"},
}

_LIBRARY = re.compile(r"(?i)failed to load (\w+ )?library|cannot open shared object|CUDA (failure|error|driver)")
"""What the runtime says of CUDA that it can't use."""

WORDS = Vocabulary(
    valued={"max_model_len": "--max-model-len", "threads": "--threads"},
    switches={"prefix_cache": Switch()},
    instead={
        "memory_share": "memory is taken as requests need it",
        "kv_cache_dtype": "it is part of the graph; prepare.args has --extra_options kv_cache_quant_scheme=...",
        "cuda_graphs": "it is part of the folder; --extra_options enable_cuda_graph=true in prepare.args",
        "chunked_prefill": "it is chunk_size in the folder's genai_config.json",
        "gpu_layers": "all layers are on one device",
        "tensor_parallel": "it computes on one device",
        "pipeline_parallel": "it computes on one device",
        "data_parallel": "it computes on one device",
    },
)


class OnnxRuntimeGenAI(Adapter):
    """ONNX Runtime GenAI on CPU or GPU."""

    name = "onnxruntime-genai"
    title = "ONNX Runtime GenAI"
    formats = frozenset({"onnx"})
    readback_paths = (PROPS,)
    capabilities = Capabilities(
        formats=formats,
        quantizations=frozenset({"int4", "int8", "awq", "gptq", "quark", "olive"}),
        dtypes=frozenset({"auto", *DTYPES}),
        settings=WORDS.settings | {"max_num_seqs"},
    )
    metrics = METRICS
    memory_path = MEMORY

    def objection(self, candidate: Candidate) -> Failure | None:
        """Settings, formats and keys it has no use for."""
        return next(self._objections(candidate), None)

    def _objections(self, candidate: Candidate) -> Iterator[Failure]:
        if candidate.command is not None:
            yield misfit(
                "ONNX Runtime GenAI is a library of its interpreter; command does not apply.",
                'Name the interpreter with python, or start a server of your own with engine = "command".',
            )
        if len(candidate.devices) > 1 if isinstance(candidate.devices, tuple) else (candidate.devices or 1) > 1:
            yield misfit("ONNX Runtime GenAI computes on one device, and devices asks for more.", "Set devices = 1.")
        asked = candidate.prepare.precision if candidate.prepare else None
        if asked is not None and asked not in PRECISIONS:
            yield misfit(
                f"The model builder has no precision {asked!r}.",
                f"Set prepare.precision to one of {', '.join(PRECISIONS)}.",
            )
        if candidate.device != "cuda" and precision_of(candidate) in HALF:
            yield Failure(
                kind="unsupported_dtype",
                what=f"ONNX Runtime GenAI does not run {precision_of(candidate)} on a CPU.",
                fix='Set prepare.precision to "int4", "int8" or "fp32", or device = "cuda".',
            )
        if candidate.settings.prefix_cache:
            yield Failure(
                kind="unsupported_setting",
                what="ONNX Runtime GenAI has no prefix cache here: each request computes its whole prompt.",
                fix="Remove settings.prefix_cache, or set it to false.",
            )
        both = replace(self.capabilities, formats=self.formats | SOURCES)
        yield from objections(self.title, both, candidate, WORDS.instead)

    def probe(self, candidate: Candidate) -> Probe | None:
        """The distribution, whether it can be imported and sees CUDA; with `device = "cuda"` why it does not."""
        python = _python(candidate)
        asked: tuple[str, ...] = ("--call", CUDA_CALL)
        if candidate.device == "cuda":
            asked = (*asked, "--output-of", json.dumps([python, host_script(CUDA_SCRIPT)]))
        return probe_in(candidate, python, *packages(*_environments(candidate), module=MODULE), *asked)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Absent, broken, of another version, or without the CUDA that is asked for."""
        where = place_of(candidate, _python(candidate))
        fix = setup_words(_environments(candidate)[0], self.title)
        judged = common_judgement(self.title, where, candidate, probed, fix)
        return judged or _cuda_failure(candidate, where, probed)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """Our host in its interpreter; the API key goes by environment."""
        served = candidate.served_model or candidate.name
        slots = candidate.settings.max_num_seqs or max(place.concurrency, 1)
        device = ("--device", candidate.device) if candidate.device else ()
        return Launch(
            argv=(
                *(_python(candidate), host_script("serve_onnx.py"), "--model", place.model_path or ""),
                *("--port", str(place.port), "--alias", served, *device, "--max-num-seqs", str(slots)),
                *WORDS.options(candidate.settings),
                *candidate.args,
            ),
            env=_environment(candidate, place),
            base_url=loopback_url(place.port),
            served_model=served,
            folders=folders(place),
        )

    def preparation(self, candidate: Candidate, source_format: str | None) -> PreparationPlan | None:
        """The model builder's run that makes a folder of ONNX out of weights; None for what is ONNX already."""
        if source_format not in SOURCES:
            return None
        precision = precision_of(candidate)
        provider = "cuda" if candidate.device == "cuda" else "cpu"
        return PreparationPlan(
            name=f"onnx {precision}",
            argv=(
                *(_builder_python(candidate), "-m", BUILDER, "-i", "{model}", "-o", "{out}"),
                *("-p", precision, "-e", provider, "-c", "{out}/cache"),
                *_builder_args(candidate),
            ),
            env={"HF_HUB_OFFLINE": "1"},
            format="onnx",
            packages=BUILDER_PACKAGES,
        )

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Context, slots, how requests share the model, device and versions."""
        return from_props(facts, answers)


def precision_of(candidate: Candidate) -> str:
    """What the builder is asked for: `prepare.precision`, else the candidate's quantization or dtype, else int4."""
    named = candidate.prepare.precision if candidate.prepare else None
    asked = (named, candidate.quantization, DTYPES.get(candidate.dtype or ""))
    return next((one for one in asked if one in PRECISIONS), USUAL)


def _environments(candidate: Candidate) -> tuple[str, ...]:
    return (CUDA, CPU) if candidate.device == "cuda" else (CPU, CUDA)


def _python(candidate: Candidate) -> str:
    """A candidate with a device is never given the other device's environment."""
    wanted = _environments(candidate)
    return python_of(candidate, *(wanted[:1] if candidate.device else wanted))


def _builder_python(candidate: Candidate) -> str:
    """The interpreter that builds: the one named for it, else where torch and Transformers are."""
    named = candidate.prepare.python if candidate.prepare else None
    if named:
        return str(user_path(named))
    return str(environment_python("transformers") or Path(_python(replace(candidate, container=None))))


def _builder_args(candidate: Candidate) -> tuple[str, ...]:
    """The candidate's own words for the builder, with leave for the model's code where that is given."""
    args = candidate.prepare.args if candidate.prepare else ()
    if not candidate.trust_remote_code:
        return args
    option = "--extra_options"
    at = args.index(option) + 1 if option in args else 0
    return (*args[:at], "hf_remote=true", *args[at:]) if at else (*args, option, "hf_remote=true")


def _environment(candidate: Candidate, place: Place) -> dict[str, str]:
    key = {KEY: place.api_key} if place.api_key else {}
    return {**gpu_environment(candidate, place), **key, **candidate.env}


def _cuda_failure(candidate: Candidate, where: str, probed: Probed) -> Failure | None:
    """The failure of a candidate for CUDA in an installation that can't use it."""
    usable, output = probed.detail.get("calls", {}).get(CUDA_CALL), probed.detail.get("output")
    # Built for CUDA, it calls CUDA available also where CUDA's libraries are missing.
    why = _last_line(output) if usable is False else _last_line(output, _LIBRARY)
    if candidate.device != "cuda" or not (why or usable is False):
        return None
    return Failure(
        kind="wrong_device",
        what=f'The candidate asks for device = "cuda", and the ONNX Runtime GenAI in {where} can\'t use it.',
        why=why,
        fix=f"{setup_words(CUDA, 'it')} It takes a node with a GPU.",
    )


def _last_line(output: Any, telling: re.Pattern[str] = re.compile(r"\S")) -> str:
    """The last line that `telling` finds something in; empty without one."""
    lines = output.strip().splitlines() if isinstance(output, str) else []
    return next((line for line in reversed(lines) if telling.search(line)), "")
