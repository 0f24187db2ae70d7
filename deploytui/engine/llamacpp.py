"""llama.cpp: its own HTTP server, as a `llama-server` binary or out of xllamacpp, or our host round llama_cpp."""

from collections.abc import Iterable, Mapping
from typing import Any

from deploytui.engine import llamacpp_told, llamacpp_ways
from deploytui.engine.adapter import LOOPBACK, Adapter, host_script, loopback_url
from deploytui.engine.hosted import KEY, PROPS
from deploytui.engine.llamacpp_settings import (
    CACHE_TYPES,
    SETTINGS,
    binary_options,
    bindings_options,
    objection,
    parameters,
    slots_for,
)
from deploytui.engine.llamacpp_ways import binary, python_for, way
from deploytui.engine.protocol import Capabilities, Launch, MetricNames, Place, Probe, Probed
from deploytui.engine.words import folders, gpu_environment
from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure

ENVIRONMENT = {"GGML_NO_BACKTRACE": "1"}
"""Without it a failed assertion starts a debugger, which hangs until it is killed."""


class LlamaCpp(Adapter):
    """llama.cpp with GGUF files on CPU or GPU."""

    name = "llamacpp"
    title = "llama.cpp"
    formats = frozenset({"gguf"})
    readback_paths = (PROPS, llamacpp_told.MODELS)
    capabilities = Capabilities(
        formats=formats,
        dtypes=frozenset({"auto"}),
        kv_cache_dtypes=frozenset(CACHE_TYPES),
        settings=SETTINGS,
    )
    metrics = MetricNames(
        running="llamacpp:requests_processing",
        waiting="llamacpp:requests_deferred",
        kv_usage="llamacpp:kv_cache_usage_ratio",
        prefix_hits="llamacpp:prompt_tokens_cached_total",
        prompt_tokens="llamacpp:prompt_tokens_total",
        output_tokens="llamacpp:tokens_predicted_total",
        aliases={
            "running": ("deploytui_host:requests_running",),
            "waiting": ("deploytui_host:requests_waiting",),
            "prompt_tokens": ("deploytui_host:prompt_tokens_total",),
            "output_tokens": ("deploytui_host:generation_tokens_total",),
        },
    )

    def objection(self, candidate: Candidate) -> Failure | None:
        """Settings llama.cpp has no word for, and keys that contradict each other."""
        return objection(candidate, is_binary=binary(candidate) is not None)

    def probe(self, candidate: Candidate) -> Probe | None:
        """The version, and the devices this build can use."""
        return llamacpp_ways.probe(candidate)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Not installed, broken, of the wrong version, or without the GPU or slots that are asked for."""
        return llamacpp_ways.judge(candidate, probed)

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The server's argv and environment; the API key goes by environment, which no process list shows."""
        alias = candidate.served_model or candidate.name
        return Launch(
            argv=_argv(candidate, place, alias),
            env=environment(candidate, place),
            base_url=loopback_url(place.port),
            served_model=alias,
            folders=folders(place),
        )

    def body(self, candidate: Candidate) -> dict[str, Any]:
        """`cache_prompt` where the prefix cache is asked for or forbidden."""
        cached = candidate.settings.prefix_cache
        return {} if cached is None else {"cache_prompt": cached}

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """Context per slot, slots, build and the model's own figures."""
        return llamacpp_told.from_answers(facts, answers)

    def readlog(self, facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
        """Bytes of weights, KV cache and compute buffers, slots, threads and layers on the GPU."""
        return llamacpp_told.from_log(facts, log)


def environment(candidate: Candidate, place: Place) -> dict[str, str]:
    """The candidate's environment with the GPUs it may use and the API key."""
    key = KEY if way(candidate, place.probed) == "llama_cpp" else "LLAMA_API_KEY"
    named = {key: place.api_key} if place.api_key else {}
    return {**ENVIRONMENT, **gpu_environment(candidate, place), **candidate.env, **named}


def _argv(candidate: Candidate, place: Place, alias: str) -> tuple[str, ...]:
    where = ("--model", place.model_path or "", "--port", str(place.port), "--alias", alias)
    if server := binary(candidate):
        options = binary_options(candidate, slots_for(candidate, place))
        return (*server, *where, "--host", LOOPBACK, *options, *candidate.args)
    if way(candidate, place.probed) == "llama_cpp":
        start = (host_script("serve_llama_cpp.py"), *where, *bindings_options(candidate, place))
        return (python_for(candidate), *start, *_set(candidate.args))
    own = parameters(candidate, slots_for(candidate, place))
    return (python_for(candidate), host_script("serve_xllamacpp.py"), *where, *_set(own), *_set(candidate.args))


def _set(settings: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for setting in settings for word in ("--set", setting))
