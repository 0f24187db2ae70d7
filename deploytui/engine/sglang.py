"""SGLang: its own OpenAI server, started as a module."""

from collections.abc import Iterable, Mapping
from typing import Any

from deploytui.engine.adapter import LOOPBACK, Adapter, common_judgement, loopback_url, misfit
from deploytui.engine.protocol import Capabilities, Launch, MetricNames, Place, Probe, Probed
from deploytui.engine.sglang_told import from_answers, from_log
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

MODULE = "sglang.launch_server"
ENVIRONMENT = "sglang"

LOAD_FORMATS = {"safetensors": "safetensors", "pytorch": "pt", "gguf": "gguf"}

WORDS = Vocabulary(
    valued={
        "max_model_len": "--context-length",
        "tensor_parallel": "--tp-size",
        "pipeline_parallel": "--pp-size",
        "data_parallel": "--dp-size",
        "memory_share": "--mem-fraction-static",
        "max_num_seqs": "--max-running-requests",
        "kv_cache_dtype": "--kv-cache-dtype",
    },
    switches={
        "prefix_cache": Switch(off=("--disable-radix-cache",)),
        "cuda_graphs": Switch(off=("--disable-cuda-graph",)),
        "chunked_prefill": Switch(off=("--chunked-prefill-size", "-1")),
    },
    instead={
        "gpu_layers": "all layers are on the GPU; --cpu-offload-gb in args keeps some of the weights off it",
    },
)


class Sglang(Adapter):
    """SGLang on GPUs, or on CPUs with a build for them."""

    name = "sglang"
    title = "SGLang"
    formats = frozenset(LOAD_FORMATS)
    readback_paths = ("/server_info", "/get_server_info", "/model_info", "/v1/models", "/metrics")
    capabilities = Capabilities(
        formats=formats,
        quantizations=names(
            "auto-round auto-round-int8 awq awq_marlin bitsandbytes compressed-tensors fp8 gguf gptq gptq_marlin "
            "modelopt modelopt_fp4 modelopt_fp8 modelopt_mixed moe_wna16 mxfp4 mxfp8 petit_nvfp4 qoq quark "
            "torchao w4afp8 w8a8_fp8 w8a8_int8"
        ),
        dtypes=frozenset({"auto", "half", "float16", "bfloat16", "float", "float32"}),
        kv_cache_dtypes=frozenset(
            {"auto", "bf16", "bfloat16", "fp8_e5m2", "fp8_e4m3", "fp4_e2m1", "mxfp8", "nvfp4"},
        ),
        compute_capability=(7, 5),
        dtype_capability={"bfloat16": (8, 0)},
        settings=WORDS.settings | {"threads"},
    )
    metrics = MetricNames(
        running="sglang:num_running_reqs",
        waiting="sglang:num_queue_reqs",
        kv_usage="sglang:token_usage",
        prefix_queries="sglang:prompt_tokens_total",
        prefix_hits="sglang:cached_tokens_total",
        preemptions="sglang:num_retracted_requests_total",
        prompt_tokens="sglang:prompt_tokens_total",
        output_tokens="sglang:generation_tokens_total",
        aliases={"waiting": ("sglang:num_requests_waiting",), "running": ("sglang:num_requests_running",)},
    )

    def objection(self, candidate: Candidate) -> Failure | None:
        """Settings, formats and keys SGLang has no use for."""
        if candidate.command is not None:
            return misfit(
                "SGLang is started as a module of its interpreter; command does not apply.",
                'Name the interpreter with python, or start it your own way with engine = "command".',
            )
        return next(objections(self.title, self.capabilities, candidate, WORDS.instead), None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """The distribution, its module and its model classes."""
        found = packages("sglang", module="sglang")
        return registry_probe(candidate, python_of(candidate, ENVIRONMENT), self.name, *found)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Absent, broken, or of another version; what its device lacks it tells when it loads."""
        where = place_of(candidate, python_of(candidate, ENVIRONMENT))
        return common_judgement(self.title, where, candidate, probed, setup_words(ENVIRONMENT, "SGLang"))

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The server's argv and environment.

        It gets no API key: it takes one in argv alone, where anyone on the node can read it, and writes it to its log.
        """
        served = candidate.served_model or candidate.name
        return Launch(
            argv=(
                *(python_of(candidate, ENVIRONMENT), "-m", MODULE, "--model-path", model_of(candidate, place)),
                *("--served-model-name", served, "--host", LOOPBACK, "--port", str(place.port)),
                *("--enable-metrics", "--enable-cache-report"),
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
        """Version, arguments as they were resolved, and the KV cache."""
        return from_answers(facts, answers)

    def readlog(self, facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
        """What it wrote of weights, KV cache and graphs while it started."""
        return from_log(facts, log)


def _artifact_words(candidate: Candidate) -> tuple[str, ...]:
    known = Sglang.capabilities.quantizations or frozenset()
    quantization = method(candidate.quantization, known) if candidate.quantization else None
    return (
        *(("--device", candidate.device) if candidate.device else ()),
        *(("--load-format", LOAD_FORMATS[candidate.format]) if candidate.format in LOAD_FORMATS else ()),
        *(("--dtype", candidate.dtype) if candidate.dtype else ()),
        *(("--quantization", quantization) if quantization else ()),
        *(("--trust-remote-code",) if candidate.trust_remote_code else ()),
    )


def _environment(candidate: Candidate, place: Place) -> dict[str, str]:
    threads = candidate.settings.threads
    return {
        **offline(candidate, place),
        **gpu_environment(candidate, place),
        **({"SGLANG_USE_CPU_ENGINE": "1"} if candidate.device == "cpu" else {}),
        # Else a server one of whose processes died waits a minute for core dumps of the others, its streams open.
        "SGLANG_CUDA_COREDUMP_BEFORE_CRASH": "0",
        **({"OMP_NUM_THREADS": str(threads)} if threads else {}),
        **candidate.env,
    }
