"""Sessions made of events, as a runner would write them, at a fixed time."""

from collections.abc import Iterable

from deploytui.record.events import AnyEvent, Decided, Note, PhaseStarted, Progress, SessionEnded
from deploytui.record.fold import fold_all
from deploytui.record.planned import PlannedCandidate
from deploytui.record.state import SessionState
from deploytui.record.verdict import Decision, Reason, Verdict
from tests.tui.candidates import failed, measured, planned, rollups, served, unsupported
from tests.tui.facts import at, environment, node, open_loop_metrics, started


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


def open_loop_events(*, client_bound: bool = False) -> list[AnyEvent]:
    """One candidate under an open loop of two workers, some requests refused and some cut off."""
    return [
        *opening(gpus=1),
        *served("vllm-bf16", "vllm", "0.33.0", begin=1),
        *measured("vllm-bf16", begin=31, rate=4812, gib=70.1, numbers=open_loop_metrics(client_bound=client_bound)),
        node(217, gpus=1),
        SessionEnded(at_ns=at(220), exit_status=3),
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
