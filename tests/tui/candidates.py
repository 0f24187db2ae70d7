"""What a runner writes about one candidate, from its plan to its end."""

from collections.abc import Iterable

from deploytui.record.engine_events import EngineRead
from deploytui.record.events import (
    AnyEvent,
    Measured,
    PhaseEnded,
    PhaseStarted,
    Planned,
    RepeatDone,
    Rollup,
    RunSet,
    StatusSet,
    Summed,
    TaskDone,
)
from deploytui.record.facts import (
    Band,
    ColdStart,
    EngineFacts,
    Failure,
    MemoryUse,
)
from deploytui.record.keys import StepKey
from deploytui.record.measured import Metrics, Quality
from deploytui.record.planned import PlannedCandidate, PlannedStep
from deploytui.record.words import Phase
from deploytui.units import GIB
from tests.tui.facts import at, metrics, score


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
    name: str,
    *,
    begin: float,
    rate: float,
    gib: float,
    gpu: bool = True,
    n: int = 600,
    ttft_s: float = 0.15,
    numbers: Metrics | None = None,
) -> Iterable[AnyEvent]:
    """Three repeats, a quality task and the end, 70 s after `begin`."""
    numbers = numbers or metrics(ttft_s=ttft_s, rate=rate, n=n)
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
