"""Text Generation Inference: its launcher, as a program on this node or in its image. It is no Python package."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from deploytui.engine.adapter import (
    LOOPBACK,
    THIS_NODE,
    Adapter,
    common_judgement,
    host_script,
    loopback_url,
    misfit,
)
from deploytui.engine.protocol import Capabilities, Launch, MetricNames, Place, Probe, Probed
from deploytui.engine.told import count
from deploytui.engine.words import (
    CONTAINER_PYTHON,
    Switch,
    Vocabulary,
    folders,
    gpu_environment,
    method,
    model_of,
    names,
    objections,
    offline,
    place_of,
    revision_words,
)
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

PROGRAM = "text-generation-launcher"

REMEDY = (
    f"No Python package has it: put {PROGRAM} on PATH or name it with command, name its image with container, or "
    'measure one that runs already with engine = "openai" and base_url.'
)

REFUSES_ABOVE = 128
"""Requests in flight that its own default lets in; further ones are refused and not queued."""

WORDS = Vocabulary(
    valued={
        "tensor_parallel": "--num-shard",
        "memory_share": "--cuda-memory-fraction",
        "max_num_seqs": "--max-batch-size",
        "kv_cache_dtype": "--kv-cache-dtype",
    },
    switches={"cuda_graphs": Switch(off=("--cuda-graphs", "0"))},
    instead={
        "pipeline_parallel": "it has tensor parallelism only",
        "data_parallel": "it serves one copy of the model",
        "chunked_prefill": "it decides by itself; --max-batch-prefill-tokens in args limits a prefill",
        "gpu_layers": "all layers are on the GPU",
        "threads": "it computes on the GPU",
    },
)


class Tgi(Adapter):
    """Text Generation Inference on GPUs."""

    name = "tgi"
    title = "TGI"
    formats = frozenset({"safetensors", "pytorch"})
    readback_paths = ("/info", "/v1/models")
    capabilities = Capabilities(
        formats=formats,
        quantizations=names(
            "awq bitsandbytes bitsandbytes-fp4 bitsandbytes-nf4 compressed-tensors eetq exl2 fp8 gptq marlin"
        ),
        dtypes=frozenset({"auto", "float16", "bfloat16"}),
        kv_cache_dtypes=frozenset({"auto", "fp8_e4m3fn", "fp8_e5m2"}),
        devices=frozenset({"cuda"}),
        dtype_capability={"bfloat16": (8, 0)},
        settings=WORDS.settings | {"max_model_len", "prefix_cache"},
    )
    metrics = MetricNames(
        running="tgi_batch_current_size",
        waiting="tgi_queue_size",
        prompt_tokens="tgi_request_input_length_sum",
        output_tokens="tgi_request_generated_tokens_sum",
    )

    def objection(self, candidate: Candidate) -> Failure | None:
        """Settings, formats and keys it has no use for."""
        return next(_objections(self, candidate), None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """Whether the launcher can be run, and its version; within the image where it has one."""
        python = candidate.python or CONTAINER_PYTHON if candidate.container else sys.executable
        program = _program(candidate)
        return Probe(argv=(python, host_script("probe.py"), "--version-of", json.dumps(program)), env=candidate.env)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Absent, broken, or of another version."""
        return common_judgement(self.title, place_of(candidate, THIS_NODE), candidate, probed, REMEDY)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The launcher's argv and environment; the API key goes by environment. It lists the model by its path."""
        model = model_of(candidate, place)
        crowd = place.concurrency > REFUSES_ABOVE
        return Launch(
            argv=(
                *(*_program(candidate), "--model-id", model, "--hostname", LOOPBACK, "--port", str(place.port)),
                *("--usage-stats", "off"),
                *revision_words(candidate, place),
                *_artifact_words(candidate),
                *_length_words(candidate),
                *(("--max-concurrent-requests", str(place.concurrency)) if crowd else ()),
                *WORDS.options(candidate.settings),
                *candidate.args,
            ),
            env=_environment(candidate, place),
            base_url=loopback_url(place.port),
            served_model=candidate.served_model or model,
            folders=folders(place),
        )

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Version and limits, as its information page tells them."""
        info = answers.get("/info")
        told = info if isinstance(info, dict) else {}
        version = told.get("version") if isinstance(told.get("version"), str) else None
        settings = {
            "max_model_len": count(told.get("max_total_tokens")),
            "max_num_seqs": count(told.get("max_batch_size")),
            "max_input_tokens": count(told.get("max_input_tokens", told.get("max_input_length"))),
            "max_concurrent_requests": count(told.get("max_concurrent_requests")),
            "max_batch_total_tokens": count(told.get("max_batch_total_tokens")),
            "dtype": told.get("model_dtype") if isinstance(told.get("model_dtype"), str) else None,
        }
        known = {name: value for name, value in settings.items() if value is not None}
        return replace(facts, version=facts.version or version, settings={**facts.settings, **known})


def _objections(engine: Tgi, candidate: Candidate) -> Iterator[Failure]:
    if candidate.command == ():
        yield misfit("command is empty.", f"Set it to the path of {PROGRAM}, or remove it.")
    if candidate.python is not None and candidate.container is None:
        yield misfit("TGI is a program, and python does not apply.", f"Name {PROGRAM} with command.")
    if _dtype(candidate) and candidate.quantization:
        yield misfit("TGI takes dtype or quantization, not both.", "Remove one of the two.")
    if (candidate.settings.max_model_len or 2) < 2:
        yield misfit("settings.max_model_len is 1, and a prompt and an answer need 2.", "Set it to 2 or more.")
    yield from objections(engine.title, engine.capabilities, candidate, WORDS.instead)


def _program(candidate: Candidate) -> tuple[str, ...]:
    return candidate.command or (PROGRAM,)


def _dtype(candidate: Candidate) -> str | None:
    return None if candidate.dtype == "auto" else candidate.dtype


def _artifact_words(candidate: Candidate) -> tuple[str, ...]:
    known = Tgi.capabilities.quantizations or frozenset()
    quantization = method(candidate.quantization, known) if candidate.quantization else None
    dtype = _dtype(candidate)
    return (
        *(("--dtype", dtype) if dtype else ()),
        *(("--quantize", quantization) if quantization else ()),
        *(("--trust-remote-code",) if candidate.trust_remote_code else ()),
    )


def _length_words(candidate: Candidate) -> tuple[str, ...]:
    """The context; a prompt may fill all of it but one token."""
    whole = candidate.settings.max_model_len
    return ("--max-total-tokens", str(whole), "--max-input-tokens", str(whole - 1)) if whole else ()


def _environment(candidate: Candidate, place: Place) -> dict[str, str]:
    cached = candidate.settings.prefix_cache
    return {
        **offline(candidate, place),
        **gpu_environment(candidate, place),
        **({} if cached is None else {"PREFIX_CACHING": "1" if cached else "0"}),
        **({"API_KEY": place.api_key} if place.api_key else {}),
        **candidate.env,
    }
