"""What an engine adapter is: it describes how an engine is found, started, asked and understood; it starts nothing.

Adapters register in the entry-point group `deploytui.engines`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from deploytui.profile.schema import Candidate
from deploytui.record.facts import EngineFacts, Failure


class Probe(Struct, frozen=True, kw_only=True):
    """A command that tells, as one JSON object on standard output, what is installed where the candidate would run."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    timeout_s: float = 60.0
    cleanup: tuple[str, ...] = ()
    """What to run when it did not end by itself, such as the removal of its container; empty when nothing is."""


class Probed(Struct, frozen=True, kw_only=True):
    """What a probe told; `error` when it told nothing."""

    found: bool
    version: str | None = None
    detail: dict[str, Any] = {}
    error: str = ""


class Capabilities(Struct, frozen=True, kw_only=True):
    """What an engine can use; None means that only the engine itself knows, when it loads."""

    formats: frozenset[str] = frozenset()
    quantizations: frozenset[str] | None = None
    """Methods as config.json names them, such as `awq` or `fp8`; GGUF kinds are not listed."""
    dtypes: frozenset[str] | None = None
    kv_cache_dtypes: frozenset[str] | None = None
    devices: frozenset[str] = frozenset({"cpu", "cuda"})
    compute_capability: tuple[int, int] | None = None
    """The least a GPU must have."""
    dtype_capability: dict[str, tuple[int, int]] = {}
    """The least a GPU must have for a dtype, such as `bfloat16` from 8.0."""
    settings: frozenset[str] = frozenset()
    """Which normalised settings it has a word for."""


class MetricNames(Struct, frozen=True, kw_only=True):
    """Names in the engine's own metrics; None where it has no such metric."""

    path: str = "/metrics"
    text: bool = True
    """Prometheus text; False where the answer is JSON, in which names are keys joined by dots, `a/b` a quotient."""
    running: str | None = None
    """Requests being computed."""
    waiting: str | None = None
    """Requests in the engine's queue."""
    kv_usage: str | None = None
    """Share of the KV cache in use, 0 to 1."""
    prefix_queries: str | None = None
    prefix_hits: str | None = None
    preemptions: str | None = None
    prompt_tokens: str | None = None
    output_tokens: str | None = None
    aliases: dict[str, tuple[str, ...]] = {}
    """Names that other versions use, by field; the field's own name wins where both are told."""


class PreparationPlan(Struct, frozen=True, kw_only=True):
    """A conversion or build that must come before the launch; it is run in an interpreter of its own, never in ours.

    In `argv` the words `{model}` and `{out}` stand for the source and for an empty folder that it shall fill.
    """

    name: str
    """Such as `onnx int4`; shown."""
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    format: str
    """Of what comes out."""
    scripts: tuple[str, ...] = ()
    """Files of ours that take part; their hash is part of the cache key."""
    packages: tuple[str, ...] = ()
    """Distributions that take part, looked up in the interpreter of `argv`; their versions are part of the key."""
    output: str = ""
    """The file or folder below `{out}` that is the model; empty for all of it."""


class Place(Struct, frozen=True, kw_only=True):
    """Where an engine shall serve: loopback `port`, model file or folder, GPUs by UUID."""

    port: int
    model_path: str | None
    concurrency: int
    """The most requests the workload keeps in flight; engines with a fixed number of slots need at least these."""
    context_tokens: int
    """Prompt and output of the longest request."""
    gpu_uuids: tuple[str, ...] = ()
    api_key: str | None = None
    probed: Probed | None = None
    """What the probe told."""


class Launch(Struct, frozen=True, kw_only=True):
    """A server process to be: argv, what its environment has on top of ours, and its door."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    base_url: str
    served_model: str
    shown_argv: tuple[str, ...] | None = None
    """argv without secrets, where it differs."""
    ready_path: str | None = None
    """Answers 200 when it can serve, where that is for the candidate to say; None leaves it to the engine."""
    folders: tuple[str, ...] = ()
    """Folders and files it reads, which a container has to be shown."""


class Engine(Protocol):
    """How to serve a model with one kind of engine."""

    name: str
    """As in a profile."""
    title: str
    """As on the screen."""
    launches: bool
    """False when the engine runs already and is neither started nor stopped."""
    simulated: bool
    formats: frozenset[str]
    health_path: str | None
    """Answers 200 when the engine can serve; None when there is no such path."""
    readback_paths: tuple[str, ...]
    """Asked once after readiness; their JSON, or their text where it is none, goes to `readback`."""
    capabilities: Capabilities
    metrics: MetricNames | None
    """None when it has no metrics."""
    memory_path: str | None
    """Tells the framework's own memory figures as JSON: `allocated_bytes`, `reserved_bytes`, `peak_allocated_bytes`,
    `peak_reserved_bytes`, `batching`, each null where unknown; None when there is no such path."""

    def objection(self, candidate: Candidate) -> Failure | None:
        """What in the candidate's configuration this engine can't take (invalid_config or unsupported kinds)."""

    def probe(self, candidate: Candidate) -> Probe | None:
        """How to find out whether it is installed; None when nothing needs to be."""

    def judge(self, candidate: Candidate, probed: Probed) -> Failure | None:
        """Why the candidate is unsupported here, with the remedy; None when it can be launched."""

    def launch(self, candidate: Candidate, place: Place) -> Launch:
        """The server's argv and environment."""

    def body(self, candidate: Candidate) -> dict[str, Any]:
        """Fields each request needs for this engine, such as its way to force the output length."""

    def preparation(self, candidate: Candidate, source_format: str | None) -> PreparationPlan | None:
        """What has to be done to a model of that format before it can be loaded; None when nothing has."""

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """The facts with what the running engine tells of its settings, version and KV cache."""

    def readlog(self, facts: EngineFacts, log: Iterable[str]) -> EngineFacts:
        """The facts with what the log of the running engine tells beside, such as the size of its KV cache."""

    def explain(self, log: Iterable[str]) -> Failure | None:
        """The first root cause found in a whole log; None when nothing is known of it."""
