"""The profile: what a person asks for, as typed records. `README.md` documents every key."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from deploytui.profile.load_schema import Closed, Lengths, Load
from deploytui.profile.strict import Count, Positive, Rate, Seconds, Share, Strict

SCHEMA = 1


class SharedPrefix(Strict, frozen=True):
    """The part of each synthetic prompt that it has in common with the others of its group."""

    ratio: Annotated[float, Meta(gt=0, lt=1)]
    """Of the prompt's tokens."""
    groups: Positive = 1


class Sampling(Strict, frozen=True):
    """Sampling, sent with every request so that no engine fills in its own; an absent optional key is not sent."""

    temperature: Seconds = 0.0
    top_p: Share = 1.0
    top_k: Count | None = None
    min_p: Share | None = None
    repetition_penalty: Rate | None = None
    ignore_eos: bool = True


class Workload(Strict, frozen=True):
    """The one workload every candidate gets."""

    prompt_tokens: Lengths | None = None
    shared_prefix: SharedPrefix | None = None
    turns: Positive = 1
    dataset: str | None = None
    output_tokens: Lengths = 128
    requests: Positive = 200
    load: Load = field(default_factory=lambda: Closed(concurrency=16))
    decide_at: Positive | Rate | None = None
    warmup_requests: Count = 16
    repeats: Positive = 3
    seed: Count = 0
    endpoint: Literal["chat", "completions"] = "chat"
    sampling: Sampling = Sampling()
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    max_seconds: Rate | None = None
    max_error_rate: Share | None = None


class Quality(Strict, frozen=True):
    """Fixed prompts with checkers, asked at the same endpoint."""

    tasks: tuple[str, ...] = ()
    max_tokens: Positive = 1024
    concurrency: Positive = 4


class Limits(Strict, frozen=True):
    """Upper limits [ms] of one latency, by statistic."""

    mean: Rate | None = None
    p50: Rate | None = None
    p90: Rate | None = None
    p95: Rate | None = None
    p99: Rate | None = None
    max: Rate | None = None


class Gates(Strict, frozen=True):
    """What a candidate must hold; an absent gate is not asked."""

    min_quality: Share | None = None
    max_quality_drop: Share | None = None
    min_success_rate: Share | None = None
    min_format_pass_rate: Share | None = None
    max_ttft_ms: Limits | None = None
    max_tpot_ms: Limits | None = None
    max_e2e_ms: Limits | None = None
    min_output_tok_s: Rate | None = None
    min_request_s: Rate | None = None
    min_goodput: Rate | None = None
    max_peak_gpu_gib: Rate | None = None
    max_peak_host_gib: Rate | None = None
    max_cold_start_s: Rate | None = None
    max_prepare_s: Rate | None = None
    max_cost_per_mtok: Rate | None = None
    max_artifact_gib: Rate | None = None
    confirm: dict[str, Literal["point", "interval"]] = {}


class EngineGate(Strict, frozen=True):
    """Limits of the engine's own state while it is measured; the table's absence means observe only."""

    max_kv_cache_usage: Share | None = None
    max_waiting_requests: Count | None = None
    action: Literal["mark", "hold"] | None = None


class Timeouts(Strict, frozen=True):
    """How long each part may take [s]."""

    download: Rate = 3600.0
    prepare: Rate = 7200.0
    load: Rate = 1200.0
    request: Rate = 120.0
    session: Rate = 28800.0


class Settings(Strict, frozen=True):
    """Normalised engine settings; an absent one is the engine's default, read back where it tells."""

    max_model_len: Positive | None = None
    tensor_parallel: Positive | None = None
    pipeline_parallel: Positive | None = None
    data_parallel: Positive | None = None
    memory_share: Share | None = None
    max_num_seqs: Positive | None = None
    prefix_cache: bool | None = None
    kv_cache_dtype: str | None = None
    cuda_graphs: bool | None = None
    chunked_prefill: bool | None = None
    threads: Positive | None = None
    gpu_layers: Count | None = None


class Container(Strict, frozen=True):
    """The image an engine runs in."""

    image: str
    runtime: Literal["docker", "podman", "apptainer"] = "docker"
    args: tuple[str, ...] = ()


class Prepare(Strict, frozen=True):
    """How the model is made into what the engine loads, where that has to be done first."""

    precision: str | None = None
    python: str | None = None
    args: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None
    format: str | None = None


class Checks(Strict, frozen=True):
    """What is looked at beside the measurement."""

    checksum: Literal["full", "declared", "off"] = "full"
    changed_files: Literal["refuse", "note"] = "refuse"
    recovery: bool = False


class Candidate(Strict, frozen=True):
    """One way to deploy: model artifact, engine, settings."""

    name: Annotated[str, Meta(min_length=1)]
    engine: str
    engine_version: str | None = None
    model: str | None = None
    revision: str | None = None
    format: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    device: Literal["cuda", "cpu"] | None = None
    devices: Positive | tuple[str, ...] | None = None
    python: str | None = None
    command: tuple[str, ...] | None = None
    container: Container | None = None
    prepare: Prepare | None = None
    ready_path: str | None = None
    settings: Settings = Settings()
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    base_url: str | None = None
    served_model: str | None = None
    api_key_env: str | None = None
    transport: Literal["direct", "aiohttp"] = "direct"
    api: Literal["openai", "tgi"] = "openai"
    allow_pickle: bool = False
    trust_remote_code: bool = False
    sha256: dict[str, str] = {}
    declared: dict[str, str] = {}
    form: Literal["online", "offline", "edge"] | None = None
    effort_days: Seconds | None = None
    price_per_hour: Seconds | None = None


class Profile(Strict, frozen=True, kw_only=True):
    """Everything that was asked, and in a saved session also what came of it."""

    schema: int = SCHEMA
    name: str = "unnamed"
    baseline: str | None = None
    form: Literal["online", "offline", "edge"] = "online"
    objective: str | None = None
    order: Literal["grouped", "interleaved"] = "grouped"
    drift_check: bool = False
    load_workers: Positive | None = None
    timeouts: Timeouts = Timeouts()
    workload: Workload
    quality: Quality = Quality()
    gates: Gates = Gates()
    engine_gate: EngineGate | None = None
    checks: Checks = Checks()
    candidates: Annotated[tuple[Candidate, ...], Meta(min_length=1)]
    session: dict[str, Any] | UnsetType = UNSET
    environment: dict[str, Any] | UnsetType = UNSET
    decision: dict[str, Any] | UnsetType = UNSET
    results: tuple[dict[str, Any], ...] = ()

    @property
    def saved(self) -> bool:
        """Whether this is a session that was saved, with results in it."""
        return bool(self.results)
