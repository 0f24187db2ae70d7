"""Sessions with figures that can be chosen: real records, measured and folded as the runner does."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from deploytui.decide.session import decide
from deploytui.definitions import DEFINITIONS_VERSION
from deploytui.profile.load_schema import Closed
from deploytui.profile.schema import Candidate, Gates, Limits, Profile, Workload
from deploytui.record import engine_events
from deploytui.record import events as ev
from deploytui.record.facts import Artifact, ColdStart, EngineFacts, Environment, Failure, Gpu, Host, MemoryUse, Sidecar
from deploytui.record.fold import fold_all
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics, Quality, ToolError
from deploytui.record.metrics import measure_many, sample_of, share
from deploytui.record.planned import PlannedCandidate
from deploytui.record.state import SessionState
from deploytui.record.trace import RequestRecord
from deploytui.record.verdict import Decision, Verdict
from deploytui.units import GIB
from tests.record.build import failure, request

TOKENS = 20
USERS = 2
GATES = Gates(min_quality=0.8, max_ttft_ms=Limits(p95=500))
CPU = Environment(host=Host(hostname="node"), gpu_missing="no driver")
H100 = Environment(host=Host(hostname="node"), gpus=(Gpu(uuid="GPU-0", index=0, name="H100-80G"),))


def profile(*names: str, gates: Gates = GATES, **other: Any) -> Profile:
    """A profile that asks for enough: 3 repeats of 20 requests by 2 users."""
    workload = Workload(
        prompt_tokens=64,
        output_tokens=TOKENS,
        requests=20,
        load=Closed(concurrency=USERS),
        warmup_requests=USERS,
        repeats=3,
    )
    rows = tuple(Candidate(name=name, engine="llamacpp", model="m.gguf") for name in names or ("a",))
    return replace(
        Profile(name="test", workload=workload, candidates=rows, gates=gates, baseline=rows[0].name), **other
    )


def repeat(
    *, requests: int = 20, ttft_ms: float = 100, step_ms: float = 1, tpot_ms: float = 10, failed: int = 0, **other: Any
) -> list[RequestRecord]:
    """A repeat of `USERS` users; TTFT grows by `step_ms` from one request to the next."""
    records: list[RequestRecord] = []
    free = [0.0] * USERS
    for number in range(requests):
        user = number % USERS
        wait = ttft_ms + step_ms * number
        options: dict[str, Any] = {"tokens": TOKENS, **other}
        record = request(number, sent_ms=free[user], ttft_ms=wait, tpot_ms=tpot_ms, **options)
        records.append(record)
        free[user] = record.end_ns / 1e6
    return records + [failure(1000 + number, end_ms=1) for number in range(failed)]


def gap_list(records: list[RequestRecord], gap_s: float) -> list[float]:
    return [gap_s] * sum(max(record.chunks - 1, 0) for record in records)


def candidate(
    name: str = "a",
    *,
    repeats: Iterable[list[RequestRecord]] | None = None,
    gap_s: float = 0.01,
    tool: ToolError = ToolError(),  # noqa: B008
    gates: Gates = GATES,
    hits: int | None = 19,
    items: int = 20,
    answered: int | None = None,
    status: Any = "load_success",
    run: Any = "ok",
    fail: Failure | None = None,
    oom: bool = False,
    gpu_gib: float | None = None,
    host_gib: float | None = 2.0,
    start: ColdStart = ColdStart(launch_s=0.5, load_s=1.5, first_token_s=0.2),  # noqa: B008
    artifact_gib: float | None = 1.0,
    device: str | None = None,
    foreign: tuple[str, ...] = (),
    point: int = 0,
    change: dict[str, Any] | None = None,
    done: bool = True,
) -> list[ev.AnyEvent]:
    """All events of one candidate, as the runner writes them; `change` replaces fields of the pooled metrics."""
    out: list[ev.AnyEvent] = []
    if artifact_gib is not None:
        artifact = Artifact(path="m.gguf", format="gguf", bytes=int(artifact_gib * GIB))
        out.append(engine_events.ArtifactRead(at_ns=1, candidate=name, artifact=artifact))
    out.append(ev.StatusSet(at_ns=2, candidate=name, status=status, failure=fail if run is None else None))
    if status != "load_success":
        return out
    out.append(
        engine_events.EngineRead(
            at_ns=3, candidate=name, engine=EngineFacts(name="llamacpp", device=device, foreign_gpu_processes=foreign)
        )
    )
    samples = [
        sample_of(records, gap_list(records, gap_s), tool)
        for records in ([repeat(), repeat(), repeat()] if repeats is None else repeats)
    ]
    for number, sample in enumerate(samples):
        step = StepKey(name, point=point, repeat=number)
        files = (Sidecar(path=f"{step.label}/requests.w0.jsonl", bytes=1, count=1, sha256="0"),)
        found = measure_many([sample], asked_tokens=TOKENS, target_concurrency=USERS, gates=gates)
        out.append(ev.RepeatDone(at_ns=4, step=step, metrics=found, sidecars=files))
    if samples:
        pooled: Metrics = measure_many(samples, asked_tokens=TOKENS, target_concurrency=USERS, gates=gates)
        out.append(ev.Measured(at_ns=5, candidate=name, point=point, metrics=replace(pooled, **(change or {}))))
    score = None if hits is None else share(hits, items)
    quality = None
    if score is not None:
        all_answered = share(items if answered is None else answered, items)
        quality = Quality(score=score, answered=all_answered, format_pass=score)
    memory = MemoryUse(
        peak_gpu_bytes=None if gpu_gib is None else int(gpu_gib * GIB),
        peak_host_bytes=None if host_gib is None else int(host_gib * GIB),
    )
    out.append(ev.Summed(at_ns=6, candidate=name, memory=memory, cold_start=start, quality=quality))
    if run is not None:
        out.append(ev.RunSet(at_ns=7, candidate=name, run=run, failure=fail, oom=oom))
    if done:
        out.append(ev.PhaseStarted(at_ns=8, candidate=name, phase="done"))
    return out


def started(**other: Any) -> ev.SessionStarted:
    fields: dict[str, Any] = {
        "at_ns": 0,
        "session": "s",
        "name": "test",
        "schema": 1,
        "tool_version": "0",
        "definitions": DEFINITIONS_VERSION,
        "wall_s": 1.0,
        "boot_id": "b",
        "hostname": "node",
        "pid": 1,
        "base_dir": "/",
        "profile_sha256": "",
        "baseline": None,
    }
    return ev.SessionStarted(**{**fields, **other})


def session(
    *candidates: list[ev.AnyEvent],
    names: tuple[str, ...] = ("a",),
    environment: Environment | None = CPU,
    engine: str = "llamacpp",
    factors: tuple[str, ...] = (),
    before: tuple[ev.AnyEvent, ...] = (),
) -> SessionState:
    """A session with these candidates planned and what happened to them."""
    rows = tuple(
        PlannedCandidate(name=name, engine=engine, artifact="m.gguf", factors=factors if place else ())
        for place, name in enumerate(names)
    )
    head: list[ev.AnyEvent] = [
        started(),
        ev.Planned(at_ns=0, candidates=rows, steps=(), workload_key="k"),
        *([ev.EnvironmentRead(at_ns=0, environment=environment)] if environment else []),
        *before,
    ]
    return fold_all([*head, *(event for events in candidates for event in events)])


def prompts(**other: Any) -> ev.PromptsMade:
    fields: dict[str, Any] = {
        "at_ns": 0,
        "draw": "d",
        "files": (),
        "tokenizer_of": "a",
        "target_tokens": 64,
        "overhead_tokens": 10,
        "exact": True,
    }
    return ev.PromptsMade(**{**fields, **other})


def one(
    *, gates: Gates = GATES, environment: Environment | None = CPU, asked: Profile | None = None, **other: Any
) -> Verdict:
    """The verdict on a single candidate `a` with these properties."""
    found = decide(
        asked or profile("a", gates=gates), session(candidate("a", gates=gates, **other), environment=environment)
    )
    return found.verdicts[0]


def codes(found: Verdict | Decision) -> list[str]:
    """The codes of its reasons, in order."""
    return [reason.code for reason in found.reasons]
