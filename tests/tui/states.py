"""Sessions made of events, as a runner would write them, at a fixed time."""

from collections.abc import Iterable

from deploytui.record.events import (
    AnyEvent,
    Decided,
    EngineRead,
    EnvironmentRead,
    Measured,
    NodeRollup,
    Note,
    PhaseEnded,
    PhaseStarted,
    Planned,
    Progress,
    RepeatDone,
    Rollup,
    RunSet,
    SessionEnded,
    SessionStarted,
    StatusSet,
    Summed,
    TaskDone,
)
from deploytui.record.facts import (
    Band,
    ColdStart,
    DeviceSample,
    Distribution,
    EngineFacts,
    Environment,
    Failure,
    Gpu,
    Host,
    MemoryUse,
    Share,
)
from deploytui.record.fold import fold_all
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics, Quality, Spread, TaskScore
from deploytui.record.planned import PlannedCandidate, PlannedStep
from deploytui.record.state import SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from deploytui.record.words import Phase
from deploytui.units import GIB

WALL = 1_767_348_000.0
"""2026-01-02 10:00 UTC."""
SECOND = 1_000_000_000
START = 5_000 * SECOND
H100 = ("GPU-aaa", "GPU-bbb")


def at(seconds: float) -> int:
    """A stamp so long after the session's start."""
    return START + int(seconds * SECOND)


def started(name: str = "qwen-chat", host: str = "gpu-node-07", *, simulated: bool = False) -> SessionStarted:
    return SessionStarted(
        at_ns=START,
        session=f"20260102-100000-{name}-ab12",
        name=name,
        schema=1,
        tool_version="0.1",
        definitions=1,
        wall_s=WALL,
        boot_id="boot",
        hostname=host,
        pid=4711,
        base_dir="/home/me",
        profile_sha256="0" * 64,
        baseline="vllm-bf16",
        simulated=simulated,
    )


def environment(*, gpus: int, host: str = "gpu-node-07") -> EnvironmentRead:
    cards = tuple(
        Gpu(uuid=uuid, index=index, name="NVIDIA H100 80GB HBM3", total_bytes=80 * GIB)
        for index, uuid in enumerate(H100[:gpus])
    )
    about = Host(hostname=host, cpu="AMD EPYC 7763", cores=2, memory_bytes=int(23.4 * GIB))
    return EnvironmentRead(at_ns=at(0.1), environment=Environment(host=about, gpus=cards))


def spread(*values: float, n: int = 600) -> Distribution:
    """A latency of mean, p50, p90, p95, p99, max [s]; percentiles that need more than n samples are None."""
    mean, p50, p90, p95, p99, most = values
    return Distribution(
        n=n,
        mean=mean,
        std=mean / 10,
        min=p50 / 2,
        p50=p50,
        p90=p90,
        p95=p95 if n >= 20 else None,
        p99=p99 if n >= 100 else None,
        max=most,
    )


def metrics(ttft_s: float = 0.15, tpot_s: float = 0.0105, rate: float = 4812.0, *, n: int = 600) -> Metrics:
    latency = spread(ttft_s, ttft_s * 0.96, ttft_s * 1.1, ttft_s * 1.2133, ttft_s * 1.5, ttft_s * 1.9, n=n)
    token = spread(tpot_s, tpot_s * 0.99, tpot_s * 1.04, tpot_s * 1.0667, tpot_s * 1.2, tpot_s * 1.6, n=n)
    whole = spread(1.5, 1.45, 1.6, 1.7, 1.9, 2.4, n=n)
    return Metrics(
        requests=n + 1,
        ok=n,
        duration_s=16.0,
        ttfr=latency,
        ttft=latency,
        ttfo=latency,
        tpot=token,
        icl=token,
        e2e=whole,
        connect=token,
        tokens_per_chunk=1.0,
        output_tok_s=rate,
        steady_output_tok_s=rate * 1.02,
        request_s=rate / 128,
        goodput=None,
        success_rate=Share(value=n / (n + 1), n=n + 1, low=0.99, high=1.0),
        prompt_tokens=Spread(n=n, min=1024, median=1024, max=1024),
        output_tokens=Spread(n=n, min=128, median=128, max=128),
        short_outputs=0,
        cached_tokens=None,
        burst_share=0.01,
        errors={"timeout": 1},
    )


def score(hits: int = 103, n: int = 120, task: str = "builtin:basic") -> TaskScore:
    share = Share(value=hits / n, n=n, low=hits / n - 0.06, high=hits / n + 0.05)
    every = Share(value=1.0, n=n, low=0.97, high=1.0)
    return TaskScore(task=task, sha256="0" * 64, score=share, answered=every, format_pass=every)


def step(candidate: str, repeat: int | None = None, task: str | None = None) -> StepKey:
    return StepKey(candidate, repeat=repeat, task=task)


def planned(*rows: PlannedCandidate) -> Planned:
    steps = tuple(PlannedStep(key=step(row.name, repeat=repeat), requests=200) for row in rows for repeat in range(3))
    return Planned(at_ns=at(0.2), candidates=rows, steps=steps, workload_key="key")


def phases(name: str, *parts: tuple[Phase, float], begin: float) -> Iterable[AnyEvent]:
    """Phases one after the other, each with its seconds."""
    now = begin
    for phase, seconds in parts:
        yield PhaseStarted(at_ns=at(now), candidate=name, phase=phase)
        now += seconds
        yield PhaseEnded(at_ns=at(now), candidate=name, phase=phase, seconds=seconds)


def rollups(name: str, *, begin: float, count: int, rate: float, gib: float, gpu: bool) -> Iterable[AnyEvent]:
    """A second each: the rate rises, holds, wavers a little."""
    for second in range(count):
        value = rate * min(1.0, (second + 1) / 4) * (1 - 0.05 * (second % 3))
        memory = gib * GIB * min(1.0, 0.6 + second / 20)
        yield Rollup(
            at_ns=at(begin + second),
            candidate=name,
            interval_s=1.0,
            output_tok_s=Band(value * 0.9, value, value),
            gpu_bytes=Band(memory, memory, memory) if gpu else None,
            host_bytes=Band(memory / 20, memory / 20, memory / 20),
            in_flight=16,
            waiting=3,
            kv_usage=0.71,
            done=second * 7,
            failed=0,
            total=200,
            ttft_s=0.18,
            tpot_s=0.011,
        )


def node(second: float, *, gpus: int) -> NodeRollup:
    busy = Band(80.0, 93.0, 93.0)
    devices = tuple(
        DeviceSample(
            uuid=uuid,
            index=index,
            name="NVIDIA H100 80GB HBM3",
            used_bytes=Band(71.2 * GIB, 71.2 * GIB, 71.2 * GIB) if index == 0 else Band(GIB, GIB, GIB),
            total_bytes=80 * GIB,
            utilisation=busy if index == 0 else Band(0.0, 0.0, 0.0),
            power_w=612.0 if index == 0 else 71.0,
            power_limit_w=700.0,
            temperature_c=64.0 if index == 0 else 31.0,
        )
        for index, uuid in enumerate(H100[:gpus])
    )
    return NodeRollup(
        at_ns=at(second),
        interval_s=1.0,
        devices=devices,
        host_used_bytes=int(3.1 * GIB),
        host_total_bytes=int(23.4 * GIB),
        cpu_percent=97.0,
    )


def served(name: str, engine: str, version: str | None, *, begin: float, gpu: bool = True) -> Iterable[AnyEvent]:
    """A candidate from its check to the end of its warm-up, 30 s."""
    parts: tuple[tuple[Phase, float], ...] = (("checking", 1), ("launching", 4), ("loading", 20), ("warming", 5))
    yield from phases(name, *parts, begin=begin)
    facts = EngineFacts(
        name=engine,
        version=version,
        argv=(
            "/opt/venvs/vllm/bin/vllm",
            "serve",
            "Qwen/Qwen2.5-7B-Instruct",
            "--max-model-len",
            "8192",
            "--seed",
            "0",
        ),
        base_url="http://127.0.0.1:40123",
        pid=5120,
        device="cuda" if gpu else "cpu",
        simulated=engine == "mock",
        settings={"max_model_len": 8192, "memory_share": 0.9},
        kv_cache={"blocks": 27813},
    )
    yield EngineRead(at_ns=at(begin + 25), candidate=name, engine=facts)
    yield StatusSet(at_ns=at(begin + 25), candidate=name, status="load_success")


def measured(
    name: str, *, begin: float, rate: float, gib: float, gpu: bool = True, n: int = 600, ttft_s: float = 0.15
) -> Iterable[AnyEvent]:
    """Three repeats, a quality task and the end, 70 s after `begin`."""
    numbers = metrics(ttft_s=ttft_s, rate=rate, n=n)
    yield PhaseStarted(at_ns=at(begin), candidate=name, phase="measuring")
    yield from rollups(name, begin=begin, count=48, rate=rate, gib=gib, gpu=gpu)
    for repeat in range(3):
        key = step(name, repeat=repeat)
        yield RepeatDone(at_ns=at(begin + 16 * repeat + 16), step=key, metrics=numbers, sidecars=())
    yield PhaseEnded(at_ns=at(begin + 48), candidate=name, phase="measuring", seconds=48)
    yield Measured(at_ns=at(begin + 48), candidate=name, metrics=numbers)
    yield from phases(name, ("quality", 12), ("stopping", 10), begin=begin + 48)
    task = score()
    yield TaskDone(at_ns=at(begin + 60), step=step(name, task="builtin:basic"), score=task, sidecars=())
    yield Summed(
        at_ns=at(begin + 70),
        candidate=name,
        memory=MemoryUse(
            load_gpu_bytes=int(gib * GIB) if gpu else None,
            peak_gpu_bytes=int(gib * GIB) if gpu else None,
            peak_host_bytes=int(gib * GIB / 20),
            source="nvml" if gpu else "process tree",
        ),
        cold_start=ColdStart(launch_s=4.0, load_s=20.0, first_token_s=0.4),
        quality=Quality(score=task.score, answered=task.answered, format_pass=task.format_pass, tasks=(task,)),
    )
    yield RunSet(at_ns=at(begin + 70), candidate=name, run="ok")
    yield PhaseStarted(at_ns=at(begin + 70), candidate=name, phase="done")


def failed(name: str, *, begin: float) -> Iterable[AnyEvent]:
    """A candidate whose engine runs out of memory while it loads."""
    yield from phases(name, ("checking", 1), ("launching", 2), ("loading", 9), begin=begin)
    failure = Failure(
        kind="oom",
        what=f"{name} ran out of GPU memory while loading.",
        why="ggml_backend_cuda_buffer_type_alloc_buffer: allocating 41283.00 MiB on device 0: cudaMalloc failed",
        fix="Lower gpu_layers (33) or max_model_len (8192).",
    )
    yield StatusSet(at_ns=at(begin + 12), candidate=name, status="load_failed", failure=failure)
    yield PhaseStarted(at_ns=at(begin + 13), candidate=name, phase="done")


def unsupported(name: str, *, begin: float) -> Iterable[AnyEvent]:
    """A candidate whose engine is not installed."""
    failure = Failure(
        kind="not_installed",
        what="SGLang is not installed for /usr/bin/python3.",
        why="ModuleNotFoundError: No module named 'sglang'",
        fix="Name its interpreter with python = … in the profile.",
    )
    yield PhaseStarted(at_ns=at(begin), candidate=name, phase="checking")
    yield StatusSet(at_ns=at(begin + 1), candidate=name, status="unsupported", failure=failure)
    yield PhaseStarted(at_ns=at(begin + 1), candidate=name, phase="done")


def held() -> tuple[Reason, ...]:
    return (
        Reason(code="ttft_over_max", text="TTFT p95 182 ≤ 500 ms (n=600 requests, 173 to 191)", n=600, passed=True),
        Reason(code="quality_below_min", text="quality 0.858 ≥ 0.8 (n=120 items, 0.8 to 0.91)", n=120, passed=True),
    )


def verdicts(*, final: bool) -> tuple[Verdict, ...]:
    fp8 = Reason(
        code="noisy",
        metric="ttft_ms.p95",
        value=489.0,
        limit=500.0,
        n=600,
        low=462.0,
        high=517.0,
        text="TTFT p95 489 is too near to 500 ms to tell (n=600 requests, 462 to 517)",
        next="Measure 900 requests a repeat: the limit is inside the interval.",
    )
    loads = Reason(code="load_failed", text="it did not load: oom")
    missing = Reason(code="unsupported", text="its engine is not installed")
    rows = [Verdict(candidate="vllm-bf16", decision="accept", held=held())]
    if final:
        rows.append(Verdict(candidate="vllm-fp8", decision="tune", reasons=(fp8,)))
        rows.append(Verdict(candidate="sglang-bf16", decision="reject", reasons=(missing,)))
        rows.append(Verdict(candidate="gguf-q4", decision="reject", reasons=(loads,)))
    return tuple(rows)


def decided(
    second: float, *, final: bool, title: str = "ACCEPT vllm-bf16 on 1× H100-80G", simulated: bool = False
) -> Decided:
    decision = Decision(
        decision="accept",
        title=title if final else f"{title}, so far",
        final=final,
        accepted=("vllm-bf16",),
        winner="vllm-bf16",
        objective="output_tok_s",
        not_covered=("vllm-fp8",) if final else (),
        fallback="vllm-bf16",
        verdicts=verdicts(final=final),
        simulated=simulated,
    )
    return Decided(at_ns=at(second), decision=decision)


def rows() -> tuple[PlannedCandidate, ...]:
    return (
        PlannedCandidate(name="vllm-bf16", engine="vllm", artifact="bf16"),
        PlannedCandidate(
            name="vllm-fp8",
            engine="vllm",
            artifact="fp8",
            differs={"dtype": "bfloat16 → fp8", "settings.max_model_len": "8192 → 16384"},
            factors=("artifact", "runtime"),
        ),
        PlannedCandidate(name="sglang-bf16", engine="sglang", artifact="bf16", factors=("engine",)),
        PlannedCandidate(name="gguf-q4", engine="llamacpp", artifact="GGUF Q4_K_M", factors=("artifact", "engine")),
    )


def opening(*, gpus: int, name: str = "qwen-chat", host: str = "gpu-node-07") -> Iterable[AnyEvent]:
    yield started(name, host)
    yield environment(gpus=gpus, host=host)
    yield planned(*rows())


def measuring_events(*, gpus: int = 2) -> list[AnyEvent]:
    """One measured, one being measured, one waiting, one failed; 141 s in."""
    gpu = gpus > 0
    return [
        *opening(gpus=gpus),
        *served("vllm-bf16", "vllm", "0.33.0", begin=1, gpu=gpu),
        *measured("vllm-bf16", begin=31, rate=4812, gib=70.1, gpu=gpu),
        *failed("gguf-q4", begin=101),
        *served("vllm-fp8", "vllm", "0.33.0", begin=115, gpu=gpu),
        PhaseStarted(at_ns=at(145), candidate="vllm-fp8", phase="measuring"),
        decided(120, final=False),
        *rollups("vllm-fp8", begin=146, count=17, rate=7300, gib=43.6, gpu=gpu),
        *(node(140 + second, gpus=gpus) for second in range(23)),
    ]


def finished_events(*, gpus: int = 2) -> list[AnyEvent]:
    """All through: accepted, to tune, unsupported, failed."""
    gpu = gpus > 0
    return [
        *opening(gpus=gpus),
        *served("vllm-bf16", "vllm", "0.33.0", begin=1, gpu=gpu),
        *measured("vllm-bf16", begin=31, rate=4812, gib=70.1, gpu=gpu),
        *failed("gguf-q4", begin=101),
        *served("vllm-fp8", "vllm", "0.33.0", begin=115, gpu=gpu),
        *measured("vllm-fp8", begin=145, rate=7300, gib=43.6, gpu=gpu, ttft_s=0.403),
        *unsupported("sglang-bf16", begin=216),
        node(217, gpus=gpus),
        Note(at_ns=at(218), level="warning", text="A foreign process used GPU 1 for 4 s.", candidate="vllm-fp8"),
        decided(219, final=True),
        SessionEnded(at_ns=at(220), exit_status=0),
    ]


def cpu_events() -> list[AnyEvent]:
    """As the demo: a CPU host, few samples."""
    names = (
        PlannedCandidate(name="one-thread", engine="llamacpp", artifact="GGUF Q4_1"),
        PlannedCandidate(name="two-threads", engine="llamacpp", artifact="GGUF Q4_1", factors=("runtime",)),
        PlannedCandidate(name="not-installed", engine="vllm", artifact="GGUF Q4_1", factors=("engine",)),
        PlannedCandidate(name="cut-short", engine="llamacpp", artifact="GGUF", factors=("artifact",)),
    )
    return [
        started("demo", "laptop"),
        environment(gpus=0, host="laptop"),
        planned(*names),
        *unsupported("not-installed", begin=1),
        *served("one-thread", "llamacpp", "2026.10.11549", begin=3, gpu=False),
        *measured("one-thread", begin=33, rate=48.2, gib=4.2, gpu=False, n=18),
        *served("two-threads", "llamacpp", "2026.10.11549", begin=104, gpu=False),
        PhaseStarted(at_ns=at(134), candidate="two-threads", phase="measuring"),
        *rollups("two-threads", begin=135, count=12, rate=81, gib=4.4, gpu=False),
        *(node(140 + second, gpus=0) for second in range(7)),
    ]


def simulated_events() -> list[AnyEvent]:
    """Numbers of the mock engine."""
    names = (
        PlannedCandidate(name="vllm-bf16", engine="mock", artifact="mock"),
        PlannedCandidate(name="mock-slow", engine="mock", artifact="mock", factors=("engine",)),
    )
    return [
        started("rehearsal", simulated=True),
        environment(gpus=0),
        planned(*names),
        *served("vllm-bf16", "mock", None, begin=1, gpu=False),
        *measured("vllm-bf16", begin=31, rate=900, gib=1, gpu=False),
        decided(102, final=False, title="SIMULATED: ACCEPT vllm-bf16 for this CPU host only", simulated=True),
        PhaseStarted(at_ns=at(103), candidate="mock-slow", phase="loading"),
        Progress(at_ns=at(104), candidate="mock-slow", done=3, total=10, text="loading shard 3 of 10"),
        node(104, gpus=0),
    ]


def many_events(count: int = 200) -> list[AnyEvent]:
    """A long list, the first ones done."""
    names = tuple(
        PlannedCandidate(name=f"candidate-{number:03}", engine="vllm", artifact="bf16") for number in range(count)
    )
    events: list[AnyEvent] = [started("sweep"), environment(gpus=1), planned(*names)]
    for number in range(3):
        name, begin = f"candidate-{number:03}", 1 + 101 * number
        events += served(name, "vllm", "0.33.0", begin=begin)
        events += measured(name, begin=begin + 30, rate=4000 + 100 * number, gib=60 + number)
    return events


def state_of(events: Iterable[AnyEvent]) -> SessionState:
    return fold_all(events)
