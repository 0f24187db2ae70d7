"""Lines of what an engine runs in: container runtimes, the driver, links between GPUs, disks and limits."""

from deploytui.engine.rule import Rule, rules

_TOOLKIT = (
    "Install the NVIDIA container toolkit and register it with the runtime (nvidia-ctk), or run without container."
)
_IMAGE = "Correct container.image, or pull it first where it needs a login."
_NCCL = 'Put NCCL_DEBUG = "INFO" in env and look at the log; in a container add --shm-size=8g to container.args.'

CONTAINER: tuple[Rule, ...] = (
    *rules(
        "wrong_device",
        "The container runtime can't hand GPUs to containers.",
        _TOOLKIT,
        "could not select device driver",
        "unknown or invalid runtime name: nvidia",
        "unresolvable CDI devices",
        "nvidia-container-cli: initialization error",
        "nvidia-container-cli.real: initialization error",
        "nvidia-container-runtime: executable file not found",
    ),
    *rules(
        "broken_install",
        "The Docker daemon can't be reached.",
        'Start it, join the group that may use it, or set container.runtime = "podman".',
        "Cannot connect to the Docker daemon",
        "permission denied while trying to connect to the Docker daemon",
        "permission denied while trying to connect to the docker API",
        "failed to connect to the docker API",
    ),
    *rules(
        "broken_install",
        "Podman's service can't be reached.",
        "Start it, or run podman on this machine itself.",
        "Cannot connect to Podman",
    ),
    *rules(
        "missing_file",
        "The container image {image} can't be had.",
        _IMAGE,
        "pull access denied for",
        "manifest for",
        pattern=r"(pull access denied|manifest) for (?P<image>\S+?),? (repository does not exist|not found)",
    ),
    *rules(
        "missing_file",
        "The container image can't be had.",
        _IMAGE,
        "pull access denied for",
        "manifest unknown",
        "No such image",
        "did not resolve to an alias",
        "initializing source docker://",
        "no such image",
        "image not known",
        "could not open image",
        "unable to pull image",
        "Unable to handle docker://",
    ),
    *rules(
        "bad_flag",
        "The container runtime does not take one of its arguments.",
        "Correct container.args.",
        "unknown flag:",
        "unknown shorthand flag:",
        "See 'docker run --help'",
        pattern=r"unknown (shorthand )?flag|See 'docker run --help'",
    ),
    *rules(
        "broken_install",
        "The image has no such program.",
        "Correct command, or container.image.",
        "executable file not found in $PATH",
        "OCI runtime create failed",
        "OCI runtime attempted to invoke a command that was not found",
    ),
    *rules(
        "port_in_use",
        "The container's port is taken by another process.",
        "Start again: another port is chosen each time.",
        "port is already allocated",
    ),
    *rules(
        "crashed",
        "A container of the same name is still there.",
        "Remove it with the container runtime's rm, and start again.",
        "is already in use by container",
        "the container name",
        pattern="already in use",
    ),
)

DRIVER: tuple[Rule, ...] = (
    *rules(
        "wrong_version",
        "The NVIDIA driver (CUDA {found}) is too old for the engine's CUDA.",
        "Update the driver, or install a build of the engine for CUDA {found} or older.",
        "NVIDIA driver on your system is too old",
        pattern=r"found version (?P<found>\d+)",
    ),
    *rules(
        "wrong_version",
        "The NVIDIA driver is too old for the engine's CUDA.",
        "Update the driver, or install a build of the engine for an older CUDA.",
        "NVIDIA driver on your system is too old",
        "CUDA driver version is insufficient",
        "unsatisfied condition: cuda>=",
        "the provided PTX was compiled with an unsupported toolchain",
        "forward compatibility was attempted on non supported HW",
    ),
    *rules(
        "broken_install",
        "The NVIDIA driver and its library are of different versions.",
        "Restart the machine, or load the driver anew: it was updated while it ran.",
        "Driver/library version mismatch",
    ),
    *rules(
        "wrong_device",
        "The engine was not built for this GPU's compute capability.",
        "Take a build of the engine for this GPU, or choose another one with devices.",
        "no kernel image is available for execution on the device",
    ),
    *rules(
        "wrong_device",
        "The GPU is busy, in exclusive use, or not yet initialised.",
        "See with nvidia-smi who uses it, start the fabric manager of an NVSwitch machine, or choose others (devices).",
        "CUDA-capable device(s) is/are busy or unavailable",
        "system not yet initialized",
    ),
    *rules(
        "crashed",
        "The GPU failed.",
        "Look into dmesg for Xid lines, and leave this GPU out with devices.",
        "GPU has fallen off the bus",
        "GPU is lost",
        "uncorrectable ECC error",
        "CUDA error: unspecified launch failure",
        "CUDA error: hardware",
    ),
)

LINKS: tuple[Rule, ...] = (
    *rules(
        "wrong_device",
        "Two parts of the engine were given the same GPU.",
        "Give as many different devices as tensor_parallel times pipeline_parallel.",
        "Duplicate GPU detected",
    ),
    *rules(
        "timeout",
        "The engine's GPUs waited for one another until the time was over.",
        _NCCL,
        "Watchdog caught collective operation timeout",
        "Timed out initializing process group",
        "DistStoreError: Timed out",
    ),
    *rules(
        "crashed",
        "The engine's GPUs could not talk to one another (NCCL).",
        _NCCL,
        "NCCL error",
        "ncclSystemError",
        "ncclInternalError",
        "ncclUnhandledCudaError",
        "ncclInvalidUsage",
        "ncclRemoteError",
        "peer access is not supported between these two devices",
        pattern=r"Error|error|peer access",
    ),
)

LIMITS: tuple[Rule, ...] = (
    *rules(
        "crashed",
        "Shared memory (/dev/shm) is full.",
        "Give more: --shm-size=8g in container.args, or a larger /dev/shm.",
        "No space left on device",
        "Bus error",
        pattern=r"shm.*No space left|No space left.*shm|Bus error.*shared memory|Bus error.*shm",
    ),
    *rules(
        "crashed",
        "A disk is full.",
        "Make room, or put caches elsewhere with HF_HOME, TMPDIR or VLLM_CACHE_ROOT in env.",
        "No space left on device",
        "Disk quota exceeded",
        "ENOSPC",
    ),
    *rules(
        "crashed",
        "The engine may not open as many files, or start as many threads, as it needs.",
        "Raise the limit (ulimit -n, ulimit -u, or the container's pids limit).",
        "Too many open files",
        "can't start new thread",
        "Resource temporarily unavailable",
        pattern=r"Too many open files|can't start new thread|(\bfork|pthread_create).*Resource temporarily",
    ),
)

_KILLER = "See who did it: a user, a scheduler at a limit of the job, or the kernel for want of memory (dmesg tells)."

KILLED: tuple[Rule, ...] = (
    *rules(
        "crashed",
        "The engine's {part} was killed, and its server ended itself for it.",
        _KILLER,
        "crashed with exit code -9",
        pattern=r"Subprocess (?P<part>\S+) \(pid=\d+\) crashed with exit code -9\b",
    ),
    *rules(
        "crashed",
        "The engine's {part} died by signal {signal}, and its server ended itself for it.",
        "See what the log says before, and what the kernel says (dmesg).",
        "crashed with exit code -",
        pattern=r"Subprocess (?P<part>\S+) \(pid=\d+\) crashed with exit code -(?P<signal>\d+)",
    ),
    *rules(
        "crashed",
        "A part of the engine was killed.",
        _KILLER,
        "Killed",
        "signaled to shutdown with signal 9",
        "exitcode: -9",
        "exitcode=-9",
        "was terminated abruptly",
        "SIGKILL",
        pattern=r"^\S*\s?Killed$|signal 9|exitcode: ?-9|exitcode=-9|abruptly|due to signal.*SIGKILL|SIGKILL \(9\)",
    ),
)
