"""TensorRT-LLM: `trtllm-serve`, from a checkpoint, or from an engine that is built for this GPU first."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from deploytui.engine.adapter import (
    LOOPBACK,
    Adapter,
    broken_here,
    common_judgement,
    host_script,
    loopback_url,
    misfit,
    not_here,
)
from deploytui.engine.protocol import Capabilities, Launch, MetricNames, Place, PreparationPlan, Probe, Probed
from deploytui.engine.told import added, count, gib_bytes, version_told
from deploytui.engine.words import (
    Switch,
    Vocabulary,
    folders,
    gpu_environment,
    model_of,
    objections,
    offline,
    place_of,
    python_of,
    revision_words,
)
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

PROGRAM = "trtllm-serve"
ENVIRONMENT = "tensorrt-llm"
LEAST = (8, 0)
"""Compute capability it needs."""

REMEDY = (
    "Its package on the index is a placeholder: install it from NVIDIA's own index or use NVIDIA's image, and name the "
    "interpreter with python or the image with container."
)

WORDS = Vocabulary(
    valued={
        "max_model_len": "--max_seq_len",
        "tensor_parallel": "--tp_size",
        "pipeline_parallel": "--pp_size",
        "memory_share": "--kv_cache_free_gpu_memory_fraction",
        "max_num_seqs": "--max_batch_size",
    },
    switches={"chunked_prefill": Switch(on=("--enable_chunked_prefill",))},
    instead={
        "data_parallel": "it serves one copy of the model",
        "prefix_cache": "write kv_cache_config.enable_block_reuse to a YAML file, and name it with --config in args",
        "kv_cache_dtype": "write kv_cache_config.dtype to a YAML file, and name it with --config in args",
        "cuda_graphs": "write cuda_graph_config to a YAML file, and name it with --config in args",
        "gpu_layers": "all layers are on the GPU",
        "threads": "it computes on the GPU",
    },
)

_CACHE = re.compile(r"Allocated ([\d.]+) GiB for max tokens in paged KV cache \((\d+)\)")
_LIMITS = re.compile(r"max_seq_len=(\d+), max_num_requests=(\d+)")


class TensorRtLlm(Adapter):
    """TensorRT-LLM on NVIDIA GPUs."""

    name = "tensorrt-llm"
    title = "TensorRT-LLM"
    formats = frozenset({"safetensors", "tensorrt"})
    readback_paths = ("/version", "/metrics")
    capabilities = Capabilities(
        formats=formats,
        dtypes=frozenset({"auto"}),
        devices=frozenset({"cuda"}),
        compute_capability=LEAST,
        settings=WORDS.settings,
    )
    metrics = MetricNames(
        text=False,
        running="numActiveRequests",
        waiting="numQueuedRequests",
        kv_usage="kvCacheStats.usedNumBlocks/kvCacheStats.maxNumBlocks",
    )

    def objection(self, candidate: Candidate) -> Failure | None:
        """Settings, formats and keys it has no use for."""
        if candidate.command == ():
            return misfit("command is empty.", f"Set it to the path of {PROGRAM}, or remove it.")
        if candidate.command is not None and candidate.python is not None:
            return misfit("command and python are both set, and only one can start the server.", "Remove one of them.")
        return next(objections(self.title, self.capabilities, candidate, WORDS.instead), None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """Program or package, then driver, then the GPU, then its import; the first that fails ends it.

        An image is probed without a GPU, and its package can't be imported then.
        """
        program = ("--program", candidate.command[0] if candidate.command else PROGRAM)
        packages = ("--packages-only",) if candidate.container else ()
        env = {**gpu_environment(candidate, _NOWHERE), **candidate.env}
        return Probe(
            argv=(_python(candidate), host_script("probe_tensorrt_llm.py"), *program, *packages), env=env, timeout_s=120
        )

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """The first of its needs that is not met, in the words of what told so."""
        where = place_of(candidate, candidate.command[0] if candidate.command else _python(candidate))
        if not probed.found:
            return not_here(self.title, where, probed, REMEDY)
        match probed.detail.get("failed"):
            case "driver":
                return _no_gpu("TensorRT-LLM needs an NVIDIA GPU, and there is none.", probed)
            case "capability":
                return _no_gpu("TensorRT-LLM needs a GPU of compute capability 8.0 or more.", probed)
            case "import":
                return broken_here(self.title, where, probed)
        return common_judgement(self.title, where, candidate, probed, REMEDY)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The server's argv and environment. It knows no API key, and lists a local model by its folder's name."""
        model = model_of(candidate, place)
        return Launch(
            argv=(
                *(*_program(candidate), model, "--host", LOOPBACK, "--port", str(place.port)),
                *(("--backend", "tensorrt") if candidate.format == "tensorrt" else ()),
                *revision_words(candidate, place),
                *(("--trust_remote_code",) if candidate.trust_remote_code else ()),
                *WORDS.options(candidate.settings),
                *candidate.args,
            ),
            env={
                **offline(candidate, place),
                **gpu_environment(candidate, place),
                **candidate.env,
            },
            base_url=loopback_url(place.port),
            served_model=candidate.served_model or (Path(model).name if place.model_path else model),
            folders=folders(place),
        )

    def preparation(self, candidate: Candidate, source_format: str | None) -> PreparationPlan | None:
        """An engine for this GPU out of a checkpoint, where `format = "tensorrt"` asks for one."""
        if candidate.format != "tensorrt" or source_format == "tensorrt":
            return None
        prepare, settings = candidate.prepare, candidate.settings
        limits = {
            "--max_batch_size": settings.max_num_seqs,
            "--max_seq_len": settings.max_model_len,
            "--tp_size": settings.tensor_parallel,
            "--pp_size": settings.pipeline_parallel,
        }
        script = host_script("build_tensorrt_llm.py")
        precision = ("--dtype", prepare.precision) if prepare and prepare.precision else ()
        return PreparationPlan(
            name=f"TensorRT engine {prepare.precision}" if prepare and prepare.precision else "TensorRT engine",
            argv=(
                *((prepare.python if prepare and prepare.python else _python(candidate)), script),
                *("--model", "{model}", "--out", "{out}", *precision),
                *(word for flag, value in limits.items() if value is not None for word in (flag, str(value))),
                *(("--trust-remote-code",) if candidate.trust_remote_code else ()),
                *(prepare.args if prepare else ()),
            ),
            env=dict(candidate.env),
            format="tensorrt",
            scripts=(script,),
            packages=("tensorrt_llm", "tensorrt", "torch"),
        )

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Version, and the KV cache of the newest iteration where it tells of one."""
        told = answers.get("/metrics")
        newest = told[-1] if isinstance(told, list) and told and isinstance(told[-1], dict) else {}
        stats = newest.get("kvCacheStats")
        cache = _cache(stats) if isinstance(stats, dict) else {}
        version = facts.version or version_told(answers.get("/version"))
        return replace(facts, version=version, kv_cache={**facts.kv_cache, **cache})

    def readlog(self, facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
        """The KV cache it allocated, and its limits as they were resolved."""
        settings: dict[str, Any] = {}
        kv_cache: dict[str, Any] = {}
        for line in log:
            if match := _CACHE.search(line):
                kv_cache.update(bytes=gib_bytes(match[1]), tokens=count(match[2]))
            if match := _LIMITS.search(line):
                settings.update(max_model_len=count(match[1]), max_num_seqs=count(match[2]))
        return added(facts, settings, kv_cache)


_NOWHERE = Place(port=0, model_path=None, concurrency=0, context_tokens=0)


def _python(candidate: Candidate) -> str:
    return python_of(candidate, ENVIRONMENT)


def _program(candidate: Candidate) -> tuple[str, ...]:
    """The server's program: as named, of the image, or beside the interpreter it is installed for."""
    if candidate.command:
        return candidate.command
    if candidate.container is not None:
        return (PROGRAM,)
    beside = Path(_python(candidate)).with_name(PROGRAM)
    return (str(beside),) if candidate.python or beside.exists() else (PROGRAM,)


def _no_gpu(what: str, probed: Probed) -> Failure:
    return Failure(
        kind="wrong_device",
        what=what,
        why=probed.error,
        fix="Run it on a node with such a GPU and its driver, or choose another engine.",
    )


def _cache(stats: Mapping[str, Any]) -> dict[str, Any]:
    blocks, size = count(stats.get("maxNumBlocks")), count(stats.get("tokensPerBlock"))
    told = {"blocks": blocks, "block_tokens": size, "tokens": blocks * size if blocks and size else None}
    return {name: value for name, value in told.items() if value}
