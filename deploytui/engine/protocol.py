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


class Probed(Struct, frozen=True, kw_only=True):
    """What a probe told; `error` when it told nothing."""

    found: bool
    version: str | None = None
    detail: dict[str, Any] = {}
    error: str = ""


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


class Launch(Struct, frozen=True, kw_only=True):
    """A server process to be: argv, what its environment has on top of ours, and its door."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    base_url: str
    served_model: str
    shown_argv: tuple[str, ...] | None = None
    """argv without secrets, where it differs."""


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
    """Asked once after readiness; their JSON goes to `readback`."""

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

    def readback(self, facts: EngineFacts, answers: Mapping[str, Any]) -> EngineFacts:
        """The facts with what the running engine tells of its settings, version and KV cache."""

    def explain(self, log: Iterable[str]) -> Failure | None:
        """The first root cause found in a whole log; None when nothing is known of it."""
