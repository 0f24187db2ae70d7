"""Small typed facts that events carry: failures, files, distributions, shares, memory."""

from typing import Any, Literal

from msgspec import Struct

from deploytui.record.words import FailureKind


class Failure(Struct, frozen=True, kw_only=True):
    """What went wrong: `what` names it, `why` is the engine's own line, `fix` one thing to do."""

    kind: FailureKind
    what: str
    why: str = ""
    fix: str = ""


class Sidecar(Struct, frozen=True, kw_only=True):
    """A file beside the journal that holds bulk data; `path` is relative to the session folder."""

    path: str
    bytes: int
    count: int
    sha256: str


class Distribution(Struct, frozen=True, kw_only=True):
    """A sample in the unit of its metric; a percentile with too few samples is None."""

    n: int
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


class Share(Struct, frozen=True, kw_only=True):
    """A share of n with its 95 % Wilson interval; value, low and high are None when n is 0."""

    value: float | None
    n: int
    low: float | None
    high: float | None


class Band(Struct, frozen=True):
    """What a value did within an interval, so that a peak is never thinned away."""

    min: float
    max: float
    last: float


class Artifact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The model as it lies on disk; unknown parts are None."""

    path: str | None = None
    format: str | None = None
    quantization: str | None = None
    bytes: int | None = None
    sha256: dict[str, str] = {}
    checksum: str | None = None
    """How the checksums came about: `full` computed here, `declared` by the hub's file names; None without any."""
    revision: str | None = None
    """The commit of a hub model; None for local files, or where the hub did not tell."""
    architecture: str | None = None
    context_length: int | None = None
    dtype: str | None = None
    """Of most weights, such as `bfloat16`; None where they are quantised or nobody tells."""
    parameters: int | None = None
    mix: dict[str, int] = {}
    """Bytes by tensor type."""
    custom_code: bool = False
    """Whether the model brings Python code of its own that an engine would have to run."""
    pickled: bool = False
    """Whether its weights are pickles, which can run code when they are loaded."""
    tokenizer_sha256: str | None = None
    template_sha256: str | None = None
    """Of the chat template's text."""


class EngineFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The engine that really ran; `settings` and `kv_cache` as it told them itself. `argv` holds no secret."""

    name: str
    version: str | None = None
    argv: tuple[str, ...] = ()
    base_url: str | None = None
    served_model: str | None = None
    pid: int | None = None
    device: str | None = None
    simulated: bool = False
    settings: dict[str, Any] = {}
    kv_cache: dict[str, Any] = {}
    python: str | None = None
    """The interpreter it runs in; None for a program."""
    container: str | None = None
    """Image, and digest where the runtime tells; None outside of a container."""
    gpu_uuids: tuple[str, ...] = ()
    foreign_gpu_processes: tuple[str, ...] = ()
    """Who else was on its GPUs right before its launch, a sentence for each GPU; empty when nobody was seen."""
    trust_remote_code: bool = False
    allow_pickle: bool = False


class ColdStart(Struct, frozen=True, kw_only=True):
    """The parts of a start [s]; None where there was none or it was not measured."""

    checksum_s: float | None = None
    download_s: float | None = None
    prepare_s: float | None = None
    launch_s: float | None = None
    load_s: float | None = None
    first_token_s: float | None = None

    @property
    def total_s(self) -> float | None:
        """Launch, load and first token [s], and preparation where there was one; None when a part is missing."""
        needed = (self.launch_s, self.load_s, self.first_token_s)
        if any(part is None for part in needed):
            return None
        return sum(part for part in (*needed, self.prepare_s) if part is not None)


class MemoryUse(Struct, frozen=True, kw_only=True):
    """Memory of one candidate [bytes]; GPU figures are the worst device above the reading before launch."""

    load_gpu_bytes: int | None = None
    peak_gpu_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    load_host_bytes: int | None = None
    peak_host_bytes: int | None = None
    source: str = "none"


class DeviceSample(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One GPU over one interval; each field is None where the driver does not tell it."""

    uuid: str
    index: int
    name: str
    used_bytes: Band | None = None
    total_bytes: int | None = None
    utilisation: Band | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    lost: str | None = None


class Host(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The node a session ran on."""

    hostname: str
    boot_id: str | None = None
    platform: str = ""
    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    python: str = ""
    tool_version: str = ""
    container: str | None = None


class Gpu(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A GPU as found at the start of a session."""

    uuid: str
    index: int
    name: str
    total_bytes: int | None = None
    compute_capability: str | None = None


class Environment(Struct, frozen=True, kw_only=True):
    """Where the numbers hold."""

    host: Host
    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    gpu_missing: str | None = None
    """Why no GPU is seen, in the driver library's words; None when there is one."""

    @property
    def label(self) -> str:
        """The hardware a verdict names, such as `on 1× H100-80G`, or `for this CPU host only`."""
        if not self.gpus:
            return "for this CPU host only"
        names = sorted({gpu.name for gpu in self.gpus})
        return "on " + ", ".join(f"{sum(g.name == name for g in self.gpus)}× {name}" for name in names)


class Fit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a model will fit, as estimated before launch [bytes]; parts nobody knows are None.

    Figures are of one device: with tensor parallelism, its share.
    """

    verdict: Literal["fits", "may_not_fit", "cannot_fit", "unknown"]
    weights_bytes: int | None = None
    kv_cache_bytes: int | None = None
    kv_cache_tokens: int | None = None
    overhead_bytes: int | None = None
    needed_bytes: int | None = None
    free_bytes: int | None = None
    """Of the chosen device with the least free memory, or of the host."""
    on: Literal["gpu", "host"] = "gpu"
    devices: int = 1
    why: str = ""
    """What the estimate rests on, or why there is none; one sentence."""


class Preparation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversion or engine build that came before the launch."""

    name: str
    """Such as `onnx int4`."""
    key: str
    """Of the cache: it changes with the source, the command, the script and the packages."""
    argv: tuple[str, ...] = ()
    script_sha256: str | None = None
    versions: dict[str, str] = {}
    """Of the packages that did it."""
    reused: bool = False
    """Whether it was found done."""
    seconds: float | None = None
    """How long the build took when it was done; None where nobody wrote that down."""
    output_bytes: int | None = None
    output_sha256: dict[str, str] = {}
    log: str | None = None


class RecoveryCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an engine did after something it had to bear."""

    name: Literal["over_long_prompt", "client_abort", "burst"]
    answers: bool
    """Whether it served a plain request afterwards."""
    status: int | None = None
    """HTTP status of what was asked of it, where there is one."""
    seconds: float | None = None
    """Until it served again [s]."""
    kv_idle: bool | None = None
    """Whether its KV cache went back to what it was; None where it does not tell."""
    kv_idle_s: float | None = None
    note: str = ""
