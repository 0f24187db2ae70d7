"""Sessions to export, folded from events as a runner writes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploytui.record.engine_events import ArtifactRead, EngineRead, Freed
from deploytui.record.events import (
    AnyEvent,
    Decided,
    EnvironmentRead,
    Measured,
    NodeRollup,
    Note,
    PhaseEnded,
    PhaseStarted,
    Planned,
    PromptsMade,
    RepeatDone,
    Rollup,
    RunSet,
    SessionEnded,
    SessionStarted,
    StatusSet,
    Summed,
    TaskDone,
    encode,
)
from deploytui.record.facts import (
    Artifact,
    Band,
    ColdStart,
    DeviceSample,
    EngineFacts,
    MemoryUse,
    Sidecar,
)
from deploytui.record.fold import fold_all
from deploytui.record.keys import StepKey
from deploytui.record.planned import PlannedCandidate, PlannedStep
from deploytui.record.state import SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.session.folder import SessionFolder
from tests.export.parts import (
    CUT_SHORT,
    GIB,
    MISSING_ENGINE,
    NO_GPU,
    ONE_GPU,
    PROFILE,
    QUALITY,
    TASK,
    S,
    metrics,
)


def started(at_ns: int = 0, base_dir: str = "/profiles") -> SessionStarted:
    return SessionStarted(
        at_ns=at_ns,
        session="20250101-chat-ab12",
        name="chat ✔",
        schema=1,
        tool_version="0.1.0",
        definitions=1,
        wall_s=1_735_689_600.25,
        boot_id="b00t",
        hostname="node-7",
        pid=4711,
        base_dir=base_dir,
        profile_sha256="cd" * 32,
        baseline="fast",
    )


def planned(names: dict[str, str]) -> Planned:
    rows = tuple(PlannedCandidate(name=name, engine=engine, artifact="GGUF Q4_1") for name, engine in names.items())
    steps = tuple(PlannedStep(key=StepKey(name, repeat=repeat), requests=8) for name in names for repeat in range(3))
    return Planned(at_ns=1, candidates=rows, steps=steps, workload_key="w" * 16)


def sidecar(path: str) -> Sidecar:
    return Sidecar(path=path, bytes=1234, count=8, sha256="ef" * 32)


def measured_candidate(name: str, engine: str, *, n: int = 24, gpu: bool = False) -> Iterator[AnyEvent]:
    yield PhaseStarted(at_ns=2, candidate=name, phase="loading")
    artifact = Artifact(
        path="/profiles/models/small.gguf", format="gguf", bytes=98_362_432, sha256={"small.gguf": "aa"}
    )
    yield ArtifactRead(at_ns=3, candidate=name, artifact=artifact)
    facts = EngineFacts(
        name=engine,
        version="2026.10",
        argv=("serve", "--port", "8080"),
        device="cpu",
        simulated=engine == "mock",
        settings={"n_ctx": 2048, "rope": None, "stops": ["a", None]},
        kv_cache={"bytes": 123, "usage": None},
    )
    yield EngineRead(at_ns=4, candidate=name, engine=facts)
    yield StatusSet(at_ns=5, candidate=name, status="load_success")
    yield PhaseEnded(at_ns=6, candidate=name, phase="warming", seconds=1.9, evidence={"requests": 2, "gap": None})
    for second in range(5):
        yield Rollup(
            at_ns=(10 + second) * S,
            candidate=name,
            interval_s=1.0,
            output_tok_s=Band(100.0 / 3, 150.5, 120.25 + second),
            host_bytes=Band(GIB / 7, GIB / 3, GIB / 3),
            gpu_bytes=Band(GIB, 2 * GIB, 2.0 * GIB) if gpu else None,
            in_flight=2,
        )
    for repeat in range(3):
        step = StepKey(name, repeat=repeat)
        files = (sidecar(f"candidates/{name}/{step.label}.jsonl"),)
        yield RepeatDone(at_ns=20 * S, step=step, metrics=metrics(8), sidecars=files)
    yield Measured(at_ns=21 * S, candidate=name, metrics=metrics(n))
    task = StepKey(name, task="builtin:basic")
    yield TaskDone(at_ns=22 * S, step=task, score=TASK, sidecars=(sidecar(f"candidates/{name}/t.jsonl"),))
    yield Summed(
        at_ns=23 * S,
        candidate=name,
        memory=MemoryUse(load_host_bytes=GIB // 5, peak_host_bytes=GIB // 3, source="host")
        if not gpu
        else MemoryUse(load_gpu_bytes=GIB, peak_gpu_bytes=2 * GIB, peak_host_bytes=GIB // 3, source="nvml"),
        cold_start=ColdStart(checksum_s=0.1, launch_s=0.2, load_s=1 / 3, first_token_s=0.05),
        quality=QUALITY,
    )
    yield RunSet(at_ns=24 * S, candidate=name, run="ok")
    yield Freed(at_ns=25 * S, candidate=name, exit_code=143)
    yield PhaseStarted(at_ns=26 * S, candidate=name, phase="done")


def unhappy_candidates() -> Iterator[AnyEvent]:
    yield StatusSet(at_ns=30 * S, candidate="absent", status="unsupported", failure=MISSING_ENGINE)
    yield PhaseStarted(at_ns=30 * S, candidate="absent", phase="done")
    yield StatusSet(at_ns=31 * S, candidate="broken", status="load_failed", failure=CUT_SHORT)
    yield PhaseStarted(at_ns=31 * S, candidate="broken", phase="done")
    yield StatusSet(at_ns=32 * S, candidate="dropped", status="cancelled")
    yield PhaseStarted(at_ns=32 * S, candidate="dropped", phase="done")


def decided(simulated: bool = False) -> Decided:
    held = Reason(
        code="ttft_over_max",
        metric="ttft_ms.p95",
        value=170.0,
        n=24,
        low=150.0,
        high=190.0,
        limit=500.0,
        margin=330.0,
        text="TTFT p95 170 ≤ 500 ms",
        passed=True,
    )
    verdicts = (
        Verdict(candidate="fast", decision="accept", held=(held,)),
        Verdict(
            candidate="absent",
            decision="reject",
            reasons=(Reason(code="unsupported", text="vllm is not installed.", next="Install vllm."),),
        ),
        Verdict(candidate="broken", decision="reject", reasons=(Reason(code="load_failed", text="cut short"),)),
    )
    return Decided(
        at_ns=40 * S,
        decision=Decision(
            decision="accept",
            title="ACCEPT fast for this CPU host only",
            accepted=("fast",),
            winner="fast",
            recommended="fast",
            objective="output_tok_s",
            not_covered=("dropped",),
            fallback="fast",
            simulated=simulated,
            verdicts=verdicts,
        ),
    )


def whole_session(*, mock: bool = False, base_dir: str = "/profiles", gpu: bool = False) -> Iterator[AnyEvent]:
    """A finished session: candidates measured, unsupported, not loaded and cancelled, and perhaps a simulated one."""
    names = {"fast": "llamacpp", "absent": "vllm", "broken": "llamacpp", "dropped": "llamacpp"}
    yield started(base_dir=base_dir)
    yield planned({**names, "pretend": "mock"} if mock else names)
    yield EnvironmentRead(at_ns=2, environment=ONE_GPU if gpu else NO_GPU)
    yield PromptsMade(
        at_ns=3,
        draw="d" * 64,
        files=(sidecar("prompts.jsonl"),),
        tokenizer_of="fast",
        target_tokens=64,
        overhead_tokens=None,
        exact=True,
    )
    if gpu:
        device = DeviceSample(uuid="GPU-1", index=0, name="H100-80G", used_bytes=Band(1.0, 3.0, 2.0))
        yield NodeRollup(at_ns=4, interval_s=1.0, devices=(device,))
    yield from measured_candidate("fast", "llamacpp", gpu=gpu)
    yield from unhappy_candidates()
    if mock:
        yield from measured_candidate("pretend", "mock")
    yield Note(at_ns=39 * S, level="warning", text="the clock of this node is odd \x1b[2J")
    yield decided(simulated=mock)
    yield SessionEnded(at_ns=41 * S, exit_status=0)


def whole_state(**choices: Any) -> SessionState:
    return fold_all(whole_session(**choices))


def session_folder(place: Path, *, text: str = PROFILE, **choices: Any) -> SessionFolder:
    """A session folder as a runner leaves it."""
    folder = SessionFolder(place / "20250101-chat-ab12")
    folder.path.mkdir()
    folder.profile.write_text(text, encoding="utf-8")
    folder.journal.write_bytes(b"".join(encode(event) for event in whole_session(**choices)))
    return folder
