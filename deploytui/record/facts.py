"""Small typed facts that events carry: failures, files, distributions, shares, memory."""

from typing import Any

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
    revision: str | None = None
    architecture: str | None = None
    context_length: int | None = None


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
