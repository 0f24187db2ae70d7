"""Lines of engines that do not know the model: its architecture, file format, quantisation, operators."""

from deploytui.engine.rule import Rule, rules

_DAMAGED = "Fetch the file again and compare its checksum."
_CHECKPOINTS_OWN = "Leave quantization out, so that the checkpoint's own is used."
_NO_CLASS = "The engine has no model class {arch}."
_NEWER = "Use a newer engine, or another one."
_NEWER_ONNX = "Install a newer ONNX Runtime in the engine's environment, or convert the model with an older opset."

LLAMACPP: tuple[Rule, ...] = (
    *rules(
        "corrupt",
        "The file names no model architecture: it is no text model, or it is damaged.",
        _DAMAGED,
        "unknown model architecture: ''",
        "unsupported model architecture: ''",
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
)

QUANTISATION: tuple[Rule, ...] = (
    *rules(
        "unsupported_quant",
        "The checkpoint is quantised with {found}, and {asked} was asked for.",
        _CHECKPOINTS_OWN,
        "does not match the quantization",
        pattern=r"model config \((?P<found>[^)]+)\).*argument \((?P<asked>[^)]+)\)",
    ),
    *rules(
        "unsupported_quant",
        "The checkpoint is not quantised with {asked}: it has no settings of that method.",
        _CHECKPOINTS_OWN,
        "Cannot find the config file for",
        pattern=r"config file for (?P<asked>\w+)",
    ),
    *rules(
        "unsupported_quant",
        "The GPU can't compute {asked}: its compute capability is {here}, and {needed} is needed.",
        "Take another quantisation of the model, or a newer GPU.",
        "is not supported for the current GPU",
        pattern=r"quantization method (?P<asked>\S+) is not supported.*capability: (?P<needed>\d+)"
        r".*capability: (?P<here>\d+)",
    ),
    *rules(
        "unsupported_dtype",
        "The quantisation {asked} does not go with dtype {dtype}.",
        "Set dtype to one of {known}.",
        "is not supported for quantization method",
        pattern=r"(?P<dtype>\S+) is not supported for quantization method (?P<asked>\w+)\. Supported dtypes: "
        r"\[(?P<known>[^\]]+)\]",
    ),
    *rules(
        "unsupported_quant",
        "The quantisation asked for is not the one of the checkpoint, or the engine does not know it.",
        _CHECKPOINTS_OWN,
        "does not match the quantization method specified",
        "Cannot find the config file for",
        "Unknown quantization method",
        "Unknown quantization type",
        "is not supported for the current GPU",
        "is not supported for quantization method",
    ),
)

ONNX: tuple[Rule, ...] = (
    *rules(
        "unsupported_format",
        "The installed ONNX Runtime does not know the operator {operator}.",
        _NEWER_ONNX,
        "is not a registered function/op",
        "Could not find an implementation for",
        pattern=r"(?P<operator>[\w.:]+)\s?\(-?\d+\) (is not a registered|with node name|from)"
        r"|implementation for (?P<operator_>\S+)",
    ),
    *rules(
        "unsupported_format",
        "The model's ONNX format is version {found}; the installed ONNX Runtime reads up to {known}.",
        _NEWER_ONNX,
        "Unsupported model IR version",
        pattern=r"IR version: (?P<found>\d+), max supported IR version: (?P<known>\d+)",
    ),
    *rules(
        "unsupported_format",
        "The model's ONNX opset {found} is newer than the installed ONNX Runtime, which knows up to {known}.",
        _NEWER_ONNX,
        "is under development and support for this is limited",
        pattern=r"Opset (?P<found>\d+) is under development.*till opset (?P<known>\d+)",
    ),
    *rules(
        "unsupported_format",
        "The installed ONNX Runtime does not know the model's operators.",
        _NEWER_ONNX,
        "is not a registered function/op",
        "Could not find an implementation for",
        "Unsupported model IR version",
        "No opset import for domain",
    ),
)

CLASSES: tuple[Rule, ...] = (
    *rules(
        "unsupported_arch",
        "The installed Transformers does not know the model's type {arch}.",
        "Install a Transformers that knows {arch} in the engine's environment.",
        "does not recognize this architecture",
        pattern=r"model type `(?P<arch>[^`]+)`",
    ),
    *rules(
        "unsupported_arch",
        "The installed Transformers does not know the model's type.",
        "Install a Transformers that knows it in the engine's environment.",
        "does not recognize this architecture",
    ),
    *rules(
        "unsupported_arch",
        _NO_CLASS,
        _NEWER,
        "are not supported for now",
        "Cannot find model module",
        "Unsupported model_type in config.json",
        "is not currently supported.",
        "Unsupported model type",
        "is not supported by TensorRT-LLM",
        pattern=r"(?:architectures \['|model module\. '|config\.json: |The |model type:? '?)(?P<arch>[\w./-]+)",
    ),
    *rules(
        "unsupported_arch",
        "The engine has no such model class.",
        _NEWER,
        "are not supported for now",
        "Cannot find model module",
        "Unsupported model_type in config.json",
        "is not currently supported.",
    ),
    *rules(
        "unsupported_arch",
        "Transformers can't read GGUF files of the architecture {arch}.",
        "Serve the GGUF file with llama.cpp.",
        "GGUF model with architecture",
        pattern="architecture (?P<arch>.+) is not supported yet",
    ),
)

MODEL: tuple[Rule, ...] = (*LLAMACPP, *QUANTISATION, *ONNX, *CLASSES)
