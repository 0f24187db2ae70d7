"""Lines of engines that could run here and failed to load: memory, files, configuration, the port."""

from deploytui.engine.rule import Rule, rules

_REINSTALL = "Install the engine again in an environment of its own."
_DAMAGED = "Fetch the file again and compare its checksum."
_LESS_MEMORY = "Lower max_model_len, max_num_seqs or gpu_layers, or take a smaller quantisation."
_TUNE = "Set max_model_len to {n} or less, or give the KV cache more memory."

MEMORY: tuple[Rule, ...] = (
    *rules(
        "oom",
        "The memory of the GPU ran out while CUDA graphs were captured, after the weights were loaded.",
        "Set cuda_graphs = false, or lower memory_share or max_num_seqs.",
        "CUDA out of memory",
        "OutOfMemoryError",
        after="Capturing",
    ),
    *rules(
        "oom",
        "The KV cache is too small for one request of max_model_len.",
        _TUNE,
        "estimated maximum model length is",
        pattern=r"estimated maximum model length is (?P<n>\d+)",
    ),
    *rules(
        "oom",
        "The KV cache is too small for one request of max_model_len.",
        _TUNE,
        "maximum number of tokens that can be stored in KV cache",
        pattern=r"KV cache \((?P<n>\d+)\)",
    ),
    *rules(
        "oom",
        "The KV cache is too small for one request of max_model_len.",
        "Lower max_model_len, or give the KV cache more memory.",
        "larger than the available KV cache memory",
        "larger than the maximum number of tokens",
    ),
    *rules(
        "oom",
        "The weights leave no memory for the KV cache under the asked share.",
        "Raise memory_share above {n}.",
        "leave no GPU memory for the KV cache",
        pattern=r"Raise --mem-fraction-static above (?P<n>[\d.]+)",
    ),
    *rules(
        "oom",
        "Less memory is free than the engine's share asks for.",
        "Lower memory_share, or free the device: something else holds memory on it.",
        "is less than desired GPU memory utilization",
        "is less than requested memory for kv",
    ),
    *rules(
        "oom",
        "The warm-up prefill did not fit into memory.",
        "Lower max_model_len or the engine's prefill tokens.",
        "Not enough memory to handle",
        "not enough memory to handle",
    ),
    *rules(
        "oom",
        "The engine ran out of host memory.",
        _LESS_MEMORY,
        "ggml_aligned_malloc: insufficient memory",
        "DefaultCPUAllocator: can't allocate memory",
        "std::bad_alloc",
        "Cannot allocate memory",
        "failed to allocate CPU buffer",
    ),
    *rules(
        "oom",
        "The engine ran out of memory.",
        _LESS_MEMORY,
        "CUDA out of memory",
        "OutOfMemoryError",
        "cudaMalloc failed: out of memory",
        "CUDA error: out of memory",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "failed to allocate buffer for kv cache",
        "failed to allocate buffer",
        "unable to allocate",
        "MemoryError",
    ),
)

FILES: tuple[Rule, ...] = (
    *rules(
        "gated",
        "The model is gated, and this account may not read it.",
        "Ask for access on the model's page, and put a token in HF_TOKEN.",
        "Cannot access gated repo",
        "gated repo",
        "is not in the authorized list",
        "401 Client Error",
        "403 Client Error",
    ),
    *rules(
        "missing_file",
        "The model file can't be opened.",
        "Check the path and its permissions.",
        "failed to open GGUF file",
        "Model path does not exist",
        "genai_config.json",
        pattern=r"failed to open|does not exist|Error opening",
    ),
    *rules(
        "missing_file",
        "There is no such model: neither a folder nor a name on the hub.",
        "Check the path or the name.",
        "Repo id must be in the form",
        "is not a valid model identifier",
        "is not a local folder",
        "RepositoryNotFoundError",
    ),
    *rules(
        "missing_file",
        "The folder has no weights the engine can read, or one of its files is missing.",
        "Complete the folder: fetch the model again.",
        "Error no file named",
        "failed to load GGUF split",
        "Cannot find any model weights",
    ),
    *rules(
        "corrupt",
        "The model file is damaged or cut off.",
        _DAMAGED,
        "model is corrupted or incomplete",
        "invalid magic characters",
        "failed to read magic",
        "failed to read key-value pairs",
        "failed to read header",
        "found nan value at block",
        "wrong number of tensors",
        "missing tensor",
        "SafetensorError",
        "InvalidHeaderDeserialization",
        "is not a valid JSON file",
        "are out of bounds or can not be read in full",
        "cannot reshape array of size",
    ),
)

CONFIGURATION: tuple[Rule, ...] = (
    *rules(
        "bad_flag",
        "The engine does not take one of the arguments.",
        "Correct or remove the argument in args.",
        "unrecognized arguments:",
        "error: invalid argument:",
        "error while handling argument",
        "error: unknown argument",
        "error: argument ",
        "invalid choice:",
        "serve_xllamacpp: error: unknown parameter",
        "serve_xllamacpp: error: bad value",
        "is not of the form NAME=VALUE",
        "can't be set from text",
    ),
    *rules(
        "invalid_config",
        "max_model_len is {asked}, longer than the model's context of {context}.",
        "Set max_model_len to {context} or less.",
        "User-specified max_model_len",
        "User-specified context_length",
        pattern=r"User-specified \w+ \((?P<asked>\d+)\) is greater than the derived \w+ \(\D*(?P<context>\d+)",
    ),
    *rules(
        "invalid_config",
        "The request is longer than the model's context.",
        "Lower max_model_len, prompt_tokens or output_tokens.",
        "cannot be greater than model context_length",
    ),
    *rules(
        "invalid_config",
        "A quantised V cache needs flash attention.",
        "Remove kv_cache_dtype, or switch flash attention on in args.",
        "V cache quantization requires flash_attn",
        "quantized V cache was requested, but this requires Flash Attention",
    ),
)

LAST: tuple[Rule, ...] = (
    *rules(
        "port_in_use",
        "The engine's port is taken by another process.",
        "Start again: another port is chosen each time.",
        "couldn't bind HTTP server socket",
        "Address already in use",
        "address already in use",
    ),
    *rules(
        "broken_install",
        "The engine's environment lacks the module {module}.",
        "Install it there, or the engine again in an environment of its own.",
        "ModuleNotFoundError: No module named",
        pattern=r"No module named '(?P<module>[^']+)'",
    ),
    *rules(
        "broken_install",
        "The engine's environment does not know its own package.",
        _REINSTALL,
        "PackageNotFoundError",
    ),
    *rules(
        "broken_install",
        "One of the engine's imports failed.",
        _REINSTALL,
        "ImportError: ",
        pattern=r"^\S*ImportError: |\sImportError: ",
    ),
    *rules("corrupt", "The engine could not load the model file.", _DAMAGED, "Failed to load model from file"),
)
