"""Lines of engines that can't run here at all: a broken installation, the device, the model's kind."""

from deploytui.engine.rule import Rule, rules

_NO_GPU = 'Run it where a GPU is visible, or ask for device = "cpu" with a build for CPUs.'
_REINSTALL = "Install the engine again in an environment of its own."
_DAMAGED = "Fetch the file again and compare its checksum."

BROKEN: tuple[Rule, ...] = (
    *rules(
        "broken_install",
        "The engine could not look into the model's class: one of its own imports failed.",
        _REINSTALL,
        "Error: ",
        pattern=r"(ImportError|ModuleNotFoundError|OSError|AttributeError): ",
        after="Error in inspecting model architecture",
    ),
    *rules(
        "broken_install",
        "The engine's kernel library can't be loaded on this machine.",
        "Install the engine's kernel package for this device, or use another engine.",
        "Could not load any common_ops library",
    ),
)

DEVICE: tuple[Rule, ...] = (
    *rules(
        "wrong_device",
        "The engine found no GPU it can use.",
        _NO_GPU,
        "Failed to infer device type",
        "No accelerator (CUDA",
        "Torch not compiled with CUDA enabled",
        "Found no NVIDIA driver on your system",
        "Cuda interface not available",
        "no CUDA-capable device is detected",
        "CUDA driver version is insufficient",
        "libcuda.so.1: cannot open shared object file",
    ),
    *rules(
        "wrong_device",
        "The engine plan was built for a GPU of compute capability {built}; this one has {here}.",
        "Build the plan on this GPU, or choose the GPU it was built for.",
        "incompatible device",
        pattern=r"expecting compute (?P<built>[\d.]+) got compute (?P<here>[\d.]+)",
    ),
    *rules(
        "wrong_version",
        "The engine plan was built with another TensorRT version.",
        "Build the plan again with the TensorRT that is installed here.",
        "Version tag does not match",
        "serialization version",
        "Serialization assertion",
    ),
    *rules(
        "unsupported_dtype",
        "The GPU has no {dtype}.",
        'Use dtype = "float16", or a GPU of a newer generation.',
        "is only supported on GPUs with compute capability",
        pattern=r"(?P<dtype>\S+) is only supported on GPUs with compute capability",
    ),
    *rules(
        "broken_install",
        "The engine was built for another CUDA runtime.",
        "Install the engine, torch and CUDA libraries of one CUDA version in an environment of its own.",
        "cannot open shared object file",
        "undefined symbol",
        pattern=r"lib(cudart|cublas|cudnn|nvrtc|nccl|cusparse|nvinfer|mpi)\S*|undefined symbol",
    ),
)

MODEL: tuple[Rule, ...] = (
    *rules(
        "corrupt",
        "The file names no model architecture: it is no text model, or it is damaged.",
        _DAMAGED,
        "unknown model architecture: ''",
    ),
    *rules(
        "unsupported_arch",
        "This build of llama.cpp does not know the architecture {arch}.",
        "Use a newer llama.cpp, or a model of an architecture it knows.",
        "unknown model architecture",
        "unsupported model architecture",
        pattern=r"model architecture:? '(?P<arch>[^']+)'",
    ),
    *rules(
        "unsupported_arch",
        "This build of llama.cpp does not know the model's tokenizer.",
        "Use a newer llama.cpp.",
        "unknown pre-tokenizer type",
        "unknown tokenizer",
    ),
    *rules(
        "unsupported_format",
        "The file is GGUF version {found}; this build of llama.cpp reads up to {known}.",
        "Use a newer llama.cpp.",
        "this GGUF file is version",
        pattern=r"version (?P<found>\d+) but this software only supports up to version (?P<known>\d+)",
    ),
    *rules(
        "unsupported_quant",
        "The file holds tensors of a type this build of llama.cpp does not know.",
        "Use a newer llama.cpp, or another quantisation.",
        "has invalid ggml type",
    ),
    *rules(
        "unsupported_quant",
        "The quantisation asked for is not the one of the checkpoint.",
        "Leave quantization out, so that the checkpoint's own is used.",
        "does not match the quantization method specified",
        "Cannot find the config file for",
    ),
    *rules(
        "unsupported_arch",
        "The installed Transformers does not know the model's type.",
        "Install a Transformers that knows it in the engine's environment.",
        "does not recognize this architecture",
    ),
    *rules(
        "unsupported_arch",
        "The engine has no such model class.",
        "Use a newer engine, or another one.",
        "are not supported for now",
        "Cannot find model module",
        "Unsupported model_type in config.json",
        "is not currently supported.",
    ),
    *rules(
        "unsupported_arch",
        "Transformers can't read GGUF files of this architecture.",
        "Serve the GGUF file with llama.cpp.",
        "GGUF model with architecture",
        pattern="is not supported yet",
    ),
    *rules(
        "not_installed",
        "Only the placeholder of the package is here: the vendor's index could not be reached.",
        "Install the engine from the vendor's index or image.",
        "InstallFailedError",
        "This is a special placeholder package",
    ),
)
