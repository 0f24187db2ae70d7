"""Transformers: a library without a server fit for measuring, so our host serves it, one request at a time."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploytui.engine.adapter import Adapter, common_judgement, host_script, loopback_url, misfit
from deploytui.engine.hosted import KEY, MEMORY, METRICS, PROPS, from_props
from deploytui.engine.protocol import Capabilities, Launch, Place, Probe, Probed
from deploytui.engine.words import (
    folders,
    gpu_environment,
    model_of,
    objections,
    offline,
    place_of,
    python_of,
    setup_words,
)
from deploytui.profile.places import user_path
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

ENVIRONMENT = "transformers"
PROBE_S = 120.0
"""Importing torch for the first time from a slow disk takes this long at most [s]."""

SWITCHES = ("prefix_cache", "cuda_graphs", "chunked_prefill")
"""Settings that are always off here: asking for that is fine, asking for more is not."""

INSTEAD = {
    "tensor_parallel": "several GPUs share the layers; set devices, or --device-map in args",
    "pipeline_parallel": "several GPUs share the layers; set devices, or --device-map in args",
    "data_parallel": "it serves one request at a time",
    "memory_share": "it reserves no memory ahead",
    "gpu_layers": "--device-map in args shares the layers",
    "kv_cache_dtype": "the KV cache has the model's dtype",
    "prefix_cache": "it keeps nothing between requests",
    "cuda_graphs": "it captures none",
    "chunked_prefill": "prefill comes in one piece",
}


class Transformers(Adapter):
    """Transformers and torch, on CPU or GPUs."""

    name = "transformers"
    title = "Transformers"
    formats = frozenset({"safetensors", "gguf", "pytorch"})
    readback_paths = (PROPS,)
    metrics = METRICS
    memory_path = MEMORY
    capabilities = Capabilities(
        formats=formats,
        dtypes=frozenset({"auto", "float32", "bfloat16", "float16"}),
        settings=frozenset({"max_model_len", "max_num_seqs", "threads", *SWITCHES}),
    )

    def objection(self, candidate: Candidate) -> Failure | None:
        """Keys and settings that Transformers has no use for."""
        return next(_objections(self, candidate), None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """Transformers, torch, its GPUs, and whether it knows the type of a local model."""
        model = user_path(candidate.model) if candidate.model else None
        local = ("--model", str(model)) if model is not None and model.is_absolute() and model.is_dir() else ()
        argv = (_python(candidate), host_script("probe_transformers.py"), *local)
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if candidate.device == "cpu" else {}
        return Probe(argv=argv, env={**_quiet(), **hidden, **candidate.env}, timeout_s=PROBE_S)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Absent, broken, of another version, without CUDA that is asked for, or without the model's type."""
        where = place_of(candidate, _python(candidate))
        judged = common_judgement(self.title, where, candidate, probed, setup_words(ENVIRONMENT, "transformers"))
        return judged or _device_failure(candidate, where, probed) or _type_failure(candidate, probed)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """Our host's argv and environment; the API key goes by environment, which no process list shows."""
        served = candidate.served_model or candidate.name
        return Launch(
            argv=(
                *(_python(candidate), host_script("serve_transformers.py"), "--model", model_of(candidate, place)),
                *("--alias", served, "--port", str(place.port), "--device", _device(candidate, place)),
                *_options(candidate, place),
                *candidate.args,
            ),
            env={
                **_quiet(),
                **offline(candidate, place),
                **gpu_environment(candidate, place),
                **({KEY: place.api_key} if place.api_key else {}),
                **candidate.env,
            },
            base_url=loopback_url(place.port),
            served_model=served,
            folders=(*folders(place), str(Path(host_script("")).resolve())),
        )

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Device, dtype, threads, batching and context, as the host says."""
        return from_props(facts, answers)


def _python(candidate: Candidate) -> str:
    return python_of(candidate, ENVIRONMENT)


def _quiet() -> dict[str, str]:
    return {"HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}


def _device(candidate: Candidate, place: Place) -> str:
    """As asked; else a GPU where it was given one that torch can use."""
    if candidate.device is not None:
        return candidate.device
    return "cuda" if place.gpu_uuids and place.probed is not None and _cuda_error(place.probed) == "" else "cpu"


def _options(candidate: Candidate, place: Place) -> Iterator[str]:
    settings = candidate.settings
    if settings.max_model_len is not None:
        yield from ("--max-model-len", str(settings.max_model_len))
    if settings.threads is not None:
        yield from ("--threads", str(settings.threads))
    if candidate.dtype is not None:
        yield from ("--dtype", candidate.dtype)
    if len(place.gpu_uuids) > 1:
        yield from ("--device-map", "auto")
    if candidate.trust_remote_code:
        yield "--trust-remote-code"
    if candidate.allow_pickle:
        yield "--allow-pickle"


def _objections(engine: Transformers, candidate: Candidate) -> Iterator[Failure]:
    if candidate.command is not None:
        yield misfit(
            "Transformers is served by our own host; command does not apply.",
            'Name the interpreter with python, or start a server your own way with engine = "command".',
        )
    for name in SWITCHES:
        if getattr(candidate.settings, name):
            yield _no_word(f"{name} = true", INSTEAD[name], name)
    if (candidate.settings.max_num_seqs or 1) > 1:
        asked = f"max_num_seqs = {candidate.settings.max_num_seqs}"
        yield _no_word(asked, "it serves one request at a time, the others wait in line", "max_num_seqs")
    yield from objections(engine.title, engine.capabilities, candidate, INSTEAD)


def _no_word(asked: str, instead: str, name: str) -> Failure:
    return Failure(
        kind="unsupported_setting",
        what=f"Transformers can't be told {asked}: {instead}.",
        fix=f"Remove settings.{name}.",
    )


def _cuda_error(probed: Probed) -> str | None:
    """torch's words why it can use no GPU, empty when it can; None where the probe did not say."""
    told = probed.detail.get("cuda")
    return told["error"] if isinstance(told, dict) and isinstance(told.get("error"), str) else None


def _device_failure(candidate: Candidate, where: str, probed: Probed) -> Failure | None:
    error = _cuda_error(probed) if candidate.device == "cuda" else None
    if not error:
        return None
    return Failure(
        kind="wrong_device",
        what=f'The candidate asks for device = "cuda", and the torch in {where} can use no GPU.',
        why=error,
        fix="Name an interpreter whose torch is built for CUDA with python, on a node with a GPU and its driver.",
    )


def _type_failure(candidate: Candidate, probed: Probed) -> Failure | None:
    match probed.detail.get("model_type"):
        case {"name": str(name), "known": False, "own_code": own_code}:
            if own_code and candidate.trust_remote_code:
                return None
            return Failure(
                kind="unsupported_arch",
                what=f"Transformers {probed.version} does not know the model type {name!r} of {candidate.model}.",
                fix="Set trust_remote_code = true if you trust the code that comes with the model."
                if own_code
                else "Install a newer Transformers, or choose another engine.",
            )
        case _:
            return None
