"""What a model is, as read from its files: the words all readers share."""

from msgspec import Struct

from deploytui.record.facts import Failure


class FileFact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a model; `path` is relative to the model's folder."""

    path: str
    bytes: int
    sha256: str | None = None
    declared: bool = False
    """Whether the checksum is only what the hub named the file by, not yet computed here."""


class Attention(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What decides how large a KV cache is; each None where the model does not tell."""

    layers: int | None = None
    """Layers that keep keys and values; those with a state of fixed size (Mamba, linear attention) do not count."""
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    hidden_size: int | None = None
    sliding_window: int | None = None
    """Tokens a sliding layer keeps; None where no layer slides."""
    sliding_layers: int | None = None
    """How many layers slide; None where nobody tells which."""
    kv_lora_rank: int | None = None
    """Of multi-head latent attention; None for other attention."""
    rope_head_dim: int | None = None
    """The part of an MLA key that is not compressed."""


class TokenizerFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tokenizer and chat template beside the weights; parts that are not there are None."""

    kind: str | None = None
    vocabulary: int | None = None
    sha256: str | None = None
    template_sha256: str | None = None
    template: str | None = None
    """The chat template's text, if it is short enough to be kept."""


class TensorRtFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a TensorRT-LLM engine folder was built with."""

    version: str | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    max_batch_size: int | None = None
    max_seq_len: int | None = None
    compute_capability: str | None = None
    """Of the GPU it was built for, where the name of that GPU tells."""
    built_for: str | None = None
    """That GPU, as the build named it."""
    dtype: str | None = None
    parallel_files: int | None = None
    """Engine files there are, one a rank."""


class OnnxFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an ONNX graph needs of its runtime."""

    opset: dict[str, int] = {}
    """By operator domain; the standard domain is `ai.onnx`."""
    operators: dict[str, tuple[str, ...]] = {}
    """Operator names by domain."""
    providers: tuple[str, ...] = ()
    """Of genai_config.json, in its order; empty means CPU."""
    genai: bool = False
    """Whether there is a genai_config.json, without which ONNX Runtime GenAI loads nothing."""


class ModelFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model as it lies on disk. What is not told is None; `faults` are reasons why nothing can load it."""

    path: str
    format: str | None = None
    """`safetensors`, `gguf`, `onnx`, `tensorrt` or `pytorch`."""
    architecture: str | None = None
    """As the files name it, such as `LlamaForCausalLM` or, in GGUF, `llama`."""
    model_type: str | None = None
    parameters: int | None = None
    bytes: int | None = None
    """Of the weights."""
    dtype: str | None = None
    quantization: str | None = None
    """Method and width, such as `Q4_K_M`, `awq-4bit`, `fp8`; None for plain weights."""
    mix: dict[str, int] = {}
    """Bytes by tensor type."""
    context_length: int | None = None
    attention: Attention = Attention()
    vocabulary: int | None = None
    experts: int | None = None
    """Of a mixture-of-experts layer; None where there is none."""
    active_experts: int | None = None
    """Chosen for each token."""
    tied: bool | None = None
    """Whether the output uses the embedding's weights; None where nobody tells."""
    whole: bool = True
    """False when the path names one file of a model that lies in a folder."""
    files: tuple[FileFact, ...] = ()
    tokenizer: TokenizerFacts = TokenizerFacts()
    onnx: OnnxFacts | None = None
    tensorrt: TensorRtFacts | None = None
    custom_code: bool = False
    """Whether config.json points at Python code of the model's own (`auto_map`)."""
    pickled: bool = False
    faults: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
