"""Lines of engines that ran out of memory, by the moment: graphs, serving, warm-up, KV cache, weights."""

from deploytui.engine.rule import Rule, rules

_LESS_MEMORY = "Lower max_model_len, max_num_seqs or gpu_layers, or take a smaller quantisation."
_TUNE = "Set max_model_len to {n} or less, or give the KV cache more memory."
_TOO_SMALL = "The KV cache is too small for one request of max_model_len."
_CUDA = ("CUDA out of memory", "OutOfMemoryError", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY")
_IN_CAPTURE = "The memory of the GPU ran out while CUDA graphs were captured, after the weights were loaded."
_NO_GRAPHS = "Set cuda_graphs = false, or lower memory_share or max_num_seqs."
_IN_WARM_UP = "The memory of the GPU ran out in the engine's warm-up, after the weights were loaded."
_FEWER = "Lower max_num_seqs, max_model_len or memory_share: the weights themselves fit."

CAPTURE: tuple[Rule, ...] = (
    *rules("oom", _IN_CAPTURE, _NO_GRAPHS, *_CUDA, after="Capturing", until="Graph capturing finished"),
    *rules("oom", _IN_CAPTURE, _NO_GRAPHS, *_CUDA, after="Capture cuda graph begin", until="Capture cuda graph end"),
    *rules(
        "oom",
        _IN_CAPTURE,
        _NO_GRAPHS,
        "Capture cuda graph failed",
        "Capture CUDA graph failed",
        pattern="(?i)out ?of ?memory",
    ),
)

MOMENTS: tuple[Rule, ...] = (
    *rules(
        "oom",
        "The memory of the GPU ran out while the engine served.",
        "Lower memory_share or max_num_seqs, so that room is left for what requests need beside the KV cache.",
        *_CUDA,
        after="Application startup complete",
    ),
    *rules(
        "oom",
        "The warm-up prefill of {n} tokens did not fit into memory.",
        "Give --max-batch-prefill-tokens with less than {n} in args, or lower max_model_len.",
        "ot enough memory to handle",
        pattern=r"ot enough memory to handle (?P<n>\d+) prefill tokens",
    ),
    *rules(
        "oom",
        "The warm-up prefill did not fit into memory.",
        "Give --max-batch-prefill-tokens with less in args, or lower max_model_len.",
        "ot enough memory to handle",
    ),
    *rules("oom", _IN_WARM_UP, _FEWER, *_CUDA, after="Model loading took"),
    *rules("oom", _IN_WARM_UP, _FEWER, *_CUDA, after="Load weight end"),
    *rules("oom", _IN_WARM_UP, _FEWER, *_CUDA, after="Warming up model"),
    *rules(
        "oom",
        "The memory of the GPU ran out when the sampler was warmed up with {n} requests.",
        "Set max_num_seqs below {n}, or lower memory_share.",
        "when warming up sampler with",
        pattern=r"when warming up sampler with (?P<n>\d+)",
    ),
)

KV_CACHE: tuple[Rule, ...] = (
    *rules("oom", _TOO_SMALL, _TUNE, "estimated maximum model length is", pattern=r"length is (?P<n>\d+)"),
    *rules(
        "oom",
        _TOO_SMALL,
        _TUNE,
        "maximum number of tokens that can be stored in KV cache",
        pattern=r"KV cache \((?P<n>\d+)\)",
    ),
    *rules(
        "oom",
        "One request of max_model_len needs {needed} GiB of KV cache, and {free} GiB are left for it.",
        "Lower max_model_len, raise memory_share, or set kv_cache_dtype to a smaller type.",
        "larger than the available KV cache memory",
        pattern=r"\((?P<needed>[\d.]+) GiB KV cache is needed.*?KV cache memory \((?P<free>[\d.]+) GiB\)",
    ),
    *rules(
        "oom",
        _TOO_SMALL,
        "Lower max_model_len, or give the KV cache more memory.",
        "larger than the available KV cache memory",
        "larger than the maximum number of tokens",
        "No available memory for the cache blocks",
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
        "The weights leave no memory for the KV cache under the asked share.",
        "Raise memory_share, or lower max_model_len.",
        "leave no GPU memory for the KV cache",
        "Not enough memory. Please try to increase --mem-fraction-static",
        "Not enough memory; increase --mem-fraction-static",
    ),
    *rules(
        "oom",
        "{free} of {total} GiB are free on the device, and memory_share = {share} asks for {wanted} GiB.",
        "Free the device, something else holds memory on it; or lower memory_share until it asks for less "
        "than {free} GiB.",
        "desired GPU memory utilization",
        pattern=r"device[^(]*\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\).*?\((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB",
    ),
    *rules(
        "oom",
        "Less memory is free than the engine's share asks for.",
        "Lower memory_share, or free the device: something else holds memory on it.",
        "is less than desired GPU memory utilization",
        "is less than requested memory for kv",
        "is larger than the free memory",
    ),
)

MEMORY: tuple[Rule, ...] = (
    *CAPTURE,
    *MOMENTS,
    *KV_CACHE,
    *rules(
        "oom",
        "The kernel ended the engine, or a part of it, for want of host memory.",
        "Raise the memory limit of the job or container, lower max_model_len, or take a smaller quantisation.",
        "oom-kill",
        "oom_kill event",
        "Out of memory: Killed process",
        "Memory cgroup out of memory",
        "killed by the OOM killer",
        "OOMKilled",
        "killed due to memory pressure",
    ),
    *rules(
        "oom",
        "{size} MiB could not be had on GPU {device}.",
        "Lower gpu_layers or max_model_len, or take a smaller quantisation.",
        "cudaMalloc failed: out of memory",
        pattern=r"allocating (?P<size>[\d.]+) MiB on device (?P<device>\d+)",
    ),
    *rules(
        "oom",
        "The engine ran out of host memory: it asked for {size} MB at once.",
        _LESS_MEMORY,
        "ggml_aligned_malloc: insufficient memory",
        pattern=r"attempted to allocate +(?P<size>[\d.]+) MB",
    ),
    *rules(
        "oom",
        "The engine ran out of host memory.",
        _LESS_MEMORY,
        "ggml_aligned_malloc: insufficient memory",
        "DefaultCPUAllocator: can't allocate memory",
        "std::bad_alloc",
        "failed to allocate CPU buffer",
        "failed to allocate CPU_Mapped buffer",
    ),
    *rules(
        "oom",
        "The engine ran out of host memory.",
        _LESS_MEMORY,
        "Cannot allocate memory",
        "MemoryError",
        "memory allocation of ",
        pattern=r"Cannot allocate memory|(^|\s)MemoryError\b|memory allocation of \d+ bytes failed",
    ),
    *rules(
        "oom",
        "The engine ran out of memory.",
        _LESS_MEMORY,
        *_CUDA,
        "cudaMalloc failed: out of memory",
        "ErrorOutOfDeviceMemory",
        "failed to allocate buffer for kv cache",
        "failed to allocate buffer",
        "unable to allocate",
        "Failed to allocate memory for requested buffer",
        "CUDA failure 2: out of memory",
    ),
)
