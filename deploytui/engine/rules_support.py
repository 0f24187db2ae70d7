"""Lines of engines that can't run here at all: a broken installation, the device, the build of a plan."""

from deploytui.engine.rule import Rule, rules

_NO_GPU = 'Run it where a GPU is visible, or ask for device = "cpu" with a build for CPUs.'
_REINSTALL = "Install the engine again in an environment of its own."
_ONE_CUDA = "Install the engine, torch and CUDA libraries of one CUDA version in an environment of its own."
_ANOTHER_BUILD = "Take a build of the engine for this system, or run it in a container."
_REBUILD = "Build the plan again with the TensorRT that is installed here."

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
        "No CUDA GPUs are available",
        "libcuda.so.1: cannot open shared object file",
        "CUDA is not available",
        "needs a GPU that torch can use",
        pattern=r"^(?!.*(ggml_cuda_init|WARN|warning))",
    ),
    *rules(
        "wrong_device",
        "The engine plan was built for a GPU of compute capability {built}; this one has {here}.",
        "Build the plan on this GPU, or choose the GPU it was built for with devices.",
        "incompatible device",
        pattern=r"expecting compute (?P<built>[\d.]+) got compute (?P<here>[\d.]+)",
    ),
    *rules(
        "wrong_version",
        "The engine plan has the serialisation version {built}; TensorRT here reads {here}.",
        _REBUILD,
        "Serialized Engine Version",
        pattern=r"Current Version: (?P<here>[\w.]+), Serialized Engine Version: (?P<built>[\w.]+)",
    ),
    *rules(
        "wrong_version",
        "The engine plan was built with another TensorRT version.",
        _REBUILD,
        "Version tag does not match",
        "serialization version",
        "Serialization assertion",
        "Engine version mismatch",
        "engine plan file is not compatible with this version of TensorRT",
    ),
    *rules(
        "invalid_config",
        "The engine plan was built for {built} ranks, and {here} were started.",
        "Set tensor_parallel times pipeline_parallel to {built}, or build the plan again.",
        "Engine world size",
        pattern=r"Engine world size \((?P<built>\d+)\) != Runtime world size \((?P<here>\d+)\)",
    ),
    *rules(
        "invalid_config",
        "The engine plan was built for another number of GPUs than were started.",
        "Set tensor_parallel and pipeline_parallel to what the plan was built for, or build the plan again.",
        "MPI worldSize is expected to be equal to tp*pp",
    ),
    *rules(
        "unsupported_dtype",
        "The GPU has no {dtype}: its compute capability is {here}, and {needed} is needed.",
        'Use dtype = "float16", or a GPU of a newer generation.',
        "is only supported on GPUs with compute capability",
        pattern=r"(?P<dtype>\S+) is only supported on GPUs with compute capability of at least (?P<needed>[\d.]*\d)"
        r".*has compute capability (?P<here>[\d.]*\d)",
    ),
    *rules(
        "unsupported_dtype",
        "The GPU has no {dtype}.",
        'Use dtype = "float16", or a GPU of a newer generation.',
        "is only supported on GPUs with compute capability",
        "not supported on this GPU",
        pattern=r"(?i)(?P<dtype>\S+) is (only supported on GPUs with compute capability|not supported on this GPU)",
    ),
    *rules(
        "unsupported_dtype",
        "The GPU has no {dtype}.",
        "Use another dtype or kv_cache_dtype, or a GPU of a newer generation.",
        "not supported in this architecture",
        "requires compute capability",
        pattern=r"(?i)(?P<dtype>fp8\w*|float8\w*|bf16|bfloat16|fp4|nvfp4|mxfp4)",
    ),
    *rules(
        "wrong_device",
        "The engine's attention needs a newer GPU.",
        "Choose another attention in args, or a GPU of a newer generation.",
        "FlashAttention only supports Ampere GPUs or newer",
        "FlashInfer requires GPUs with sm",
    ),
)

LIBRARIES: tuple[Rule, ...] = (
    *rules(
        "broken_install",
        "The engine was built for CUDA {cuda}, whose lib{library} is not here.",
        _ONE_CUDA,
        "cannot open shared object file",
        pattern=r"lib(?P<library>cudart|cublas|cublasLt|nvrtc|nvJitLink)\.so\.(?P<cuda>\d+)",
    ),
    *rules(
        "broken_install",
        "The engine was built for another CUDA runtime.",
        _ONE_CUDA,
        "cannot open shared object file",
        "undefined symbol",
        "version `GLIBCXX",
        pattern=r"lib(cudart|cublas|cudnn|nvrtc|nccl|cusparse|nvinfer|cufft|curand)\S*|undefined symbol",
    ),
    *rules(
        "broken_install",
        "The engine was built for a newer system: it needs {library}.",
        _ANOTHER_BUILD,
        "version `GLIBC",
        pattern=r"version `(?P<library>GLIBC\w*_[\d.]+)' not found",
    ),
    *rules(
        "broken_install",
        "The engine lacks the library {library}.",
        "Install it, or put its folder in LD_LIBRARY_PATH in env.",
        "cannot open shared object file",
        pattern=r"(?P<library>lib[\w+.-]+\.so[\d.]*): cannot open shared object file",
    ),
    *rules(
        "broken_install",
        "The program is for another kind of machine.",
        _ANOTHER_BUILD,
        "Exec format error",
        "Illegal instruction",
        pattern=r"Exec format error|Illegal instruction( \(core dumped\))?$",
    ),
    *rules(
        "broken_install",
        "The engine compiles parts of itself and finds no compiler.",
        "Install a C compiler or the CUDA toolkit, or set cuda_graphs = false where that avoids it.",
        "Failed to find C compiler",
        "Could not find nvcc",
        "nvcc: not found",
        "CUDA_HOME environment variable is not set",
        "Ninja is required to load C++ extensions",
    ),
)

PLACEHOLDER: tuple[Rule, ...] = (
    *rules(
        "not_installed",
        "Only the placeholder of the package is here: the vendor's index could not be reached.",
        "Install the engine from the vendor's index or image.",
        "InstallFailedError",
        "This is a special placeholder package",
    ),
)
