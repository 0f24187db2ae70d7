"""The normalised settings in llama.cpp's words, for both ways to start it."""

from collections.abc import Iterator

from msgspec import Struct

from deploytui.engine.adapter import misfit
from deploytui.engine.protocol import Place
from deploytui.profile.schema import Candidate, Settings
from deploytui.record.facts import Failure

CONTEXT_STEP = 256
"""llama.cpp rounds the context of a slot up to this many tokens."""

ALL_LAYERS = 999
"""More layers than any model has."""

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")

SETTINGS = frozenset({"max_model_len", "max_num_seqs", "prefix_cache", "kv_cache_dtype", "threads", "gpu_layers"})
"""The normalised settings it has a word for."""

NO_WORD: dict[str, str] = {
    "memory_share": "memory is given by gpu_layers, max_model_len and max_num_seqs",
    "cuda_graphs": "it decides by itself",
    "chunked_prefill": "prefill always comes in pieces; their length is n_ubatch",
}
"""Settings llama.cpp has no word for, and what stands in their place."""

PARALLEL = ("tensor_parallel", "pipeline_parallel", "data_parallel")


class Slots(Struct, frozen=True, kw_only=True):
    """How many requests are served at once, and the context of each [tokens]."""

    count: int
    tokens: int

    @property
    def total(self) -> int:
        """The context llama.cpp is asked for, which it divides among the slots [tokens]."""
        return self.count * self.tokens


def slots_for(candidate: Candidate, place: Place) -> Slots:
    """Slots as asked, else one for each request in flight; each with room for the longest request."""
    settings = candidate.settings
    needed = (place.context_tokens // CONTEXT_STEP + 1) * CONTEXT_STEP
    return Slots(count=settings.max_num_seqs or place.concurrency, tokens=settings.max_model_len or needed)


def layers_on_gpu(candidate: Candidate) -> int | None:
    """Layers for the GPU; None leaves it to llama.cpp.

    With device = "cuda" all of them, so that what does not fit fails instead of falling back to the CPU.
    """
    if candidate.device == "cpu":
        return 0
    if candidate.settings.gpu_layers is not None:
        return candidate.settings.gpu_layers
    return ALL_LAYERS if candidate.device == "cuda" else None


def cache_type(settings: Settings) -> str | None:
    """The type of the KV cache; None leaves it to llama.cpp."""
    asked = settings.kv_cache_dtype
    return None if asked in (None, "auto") else asked


def parameters(candidate: Candidate, slots: Slots) -> Iterator[str]:
    """The settings as `NAME=VALUE` of xllamacpp's CommonParams."""
    settings = candidate.settings
    yield f"n_ctx={slots.total}"
    yield f"n_parallel={slots.count}"
    if settings.threads is not None:
        yield f"cpuparams.n_threads={settings.threads}"
        yield f"cpuparams_batch.n_threads={settings.threads}"
    if (layers := layers_on_gpu(candidate)) is not None:
        yield f"n_gpu_layers={layers}"
    if (kind := cache_type(settings)) is not None:
        yield f"cache_type_k={kind}"
        yield f"cache_type_v={kind}"
    if settings.prefix_cache is False:
        yield "cache_prompt=false"
        yield "cache_ram_mib=0"


def binary_options(candidate: Candidate, slots: Slots) -> Iterator[str]:
    """The settings as options of llama-server."""
    settings = candidate.settings
    yield from ("--ctx-size", str(slots.total), "--parallel", str(slots.count), "--metrics")
    if settings.threads is not None:
        yield from ("--threads", str(settings.threads))
    if (layers := layers_on_gpu(candidate)) is not None:
        yield from ("--n-gpu-layers", str(layers))
    if (kind := cache_type(settings)) is not None:
        yield from ("--cache-type-k", kind, "--cache-type-v", kind)


def bindings_options(candidate: Candidate, place: Place) -> tuple[str, ...]:
    """The settings as options of our host round llama_cpp, which has one slot."""
    settings = candidate.settings
    tokens = slots_for(candidate, place).tokens
    options: list[str] = ["--max-model-len", str(tokens)]
    if candidate.device is not None:
        options += ("--device", candidate.device)
    if settings.threads is not None:
        options += ("--threads", str(settings.threads))
    if (layers := layers_on_gpu(candidate)) is not None:
        options += ("--gpu-layers", str(layers))
    if (kind := cache_type(settings)) is not None:
        options += ("--cache-type", kind)
    return (*options, *(("--no-prefix-cache",) if settings.prefix_cache is False else ()))


def objection(candidate: Candidate, *, is_binary: bool) -> Failure | None:
    """The first thing in a candidate that llama.cpp can't take; None when it can take all."""
    return next(_objections(candidate, is_binary=is_binary), None)


def _objections(candidate: Candidate, *, is_binary: bool) -> Iterator[Failure]:
    if candidate.base_url is not None:
        yield misfit("base_url belongs to an endpoint that runs already.", 'Use engine = "openai", or remove base_url.')
    if candidate.model is None:
        yield misfit("The candidate names no model.", "Set model to the path of a GGUF file.")
    if candidate.trust_remote_code or candidate.allow_pickle:
        name = "trust_remote_code" if candidate.trust_remote_code else "allow_pickle"
        yield misfit(f"A GGUF file holds no code: {name} does not apply to llama.cpp.", f"Remove {name}.")
    if candidate.command is not None and candidate.python is not None:
        yield misfit("command and python are both set, and only one can start the server.", "Remove one of the two.")
    if candidate.command == ():
        yield misfit("command is empty.", 'Set it to the llama-server binary, such as ["/opt/llama.cpp/llama-server"].')
    yield from _artifact_objections(candidate)
    yield from _setting_objections(candidate)
    yield from _argument_objections(candidate, is_binary=is_binary)


def _artifact_objections(candidate: Candidate) -> Iterator[Failure]:
    if candidate.format not in (None, "gguf"):
        yield Failure(
            kind="unsupported_format",
            what=f"llama.cpp loads GGUF files, not {candidate.format}.",
            fix="Convert the model to GGUF, or choose another engine.",
        )
    if candidate.dtype not in (None, "auto"):
        yield Failure(
            kind="unsupported_dtype",
            what=f"llama.cpp computes in what the GGUF file holds; it can't be told dtype = {candidate.dtype!r}.",
            fix="Remove dtype, and choose a GGUF file of the type you want.",
        )


def _setting_objections(candidate: Candidate) -> Iterator[Failure]:
    settings = candidate.settings
    for name, instead in NO_WORD.items():
        if getattr(settings, name) is not None:
            yield _no_word(name, instead)
    for name in PARALLEL:
        if (getattr(settings, name) or 1) > 1:
            yield _no_word(name, "several GPUs are shared by --split-mode and --tensor-split in args")
    if cache_type(settings) not in (None, *CACHE_TYPES):
        yield Failure(
            kind="unsupported_setting",
            what=f"llama.cpp has no KV cache of type {settings.kv_cache_dtype!r}.",
            fix=f"Use one of {', '.join(CACHE_TYPES)}.",
        )
    if candidate.device == "cpu" and settings.gpu_layers:
        yield misfit(f'device = "cpu" and gpu_layers = {settings.gpu_layers} contradict.', "Remove one of the two.")


def _no_word(name: str, instead: str) -> Failure:
    return Failure(
        kind="unsupported_setting",
        what=f"llama.cpp has no word for the setting {name}: {instead}.",
        fix=f"Remove settings.{name}.",
    )


def _argument_objections(candidate: Candidate, *, is_binary: bool) -> Iterator[Failure]:
    loose = next((arg for arg in candidate.args if "=" not in arg), None)
    if loose is not None and not is_binary:
        yield misfit(
            f"args holds {loose!r}, and xllamacpp takes NAME=VALUE of its CommonParams.",
            'Write such as "n_batch=512", or name a llama-server binary with command to use its own options.',
        )
