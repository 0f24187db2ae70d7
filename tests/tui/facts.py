"""What a runner reads and measures, at a fixed time."""

from msgspec.structs import replace

from deploytui.record.events import EnvironmentRead, NodeRollup, SessionStarted
from deploytui.record.facts import (
    Band,
    DeviceSample,
    Distribution,
    Environment,
    Gpu,
    Host,
    Share,
)
from deploytui.record.measured import Metrics, Spread, TaskScore, ToolError
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


def tool(*, client_bound: bool = False) -> ToolError:
    """Of two workers that stamped in the kernel."""
    why = "worker 1 took 97 % of a core. Give the load more cores: load_workers = 4."
    return ToolError(
        clock="kernel",
        path="tcp",
        lag_ms_p50=0.041,
        lag_ms_p99=0.312,
        lag_ms_max=12.4,
        multi_chunk_read_share=0.0123,
        extra_multi_chunk_read_share=0.0031,
        late_sends=3,
        late_send_ms_max=2.13,
        workers=2,
        worker_cpu_share=0.97 if client_bound else 0.41,
        worker_cpu_shares=(0.38, 0.97 if client_bound else 0.41),
        client_bound=client_bound,
        client_bound_why=why if client_bound else "",
    )


def open_loop_metrics(*, client_bound: bool = False) -> Metrics:
    """Requests that left by a schedule; some were refused, some cut off at the end."""
    late = spread(0.2, 0.19, 0.22, 0.24, 0.31, 0.52)
    whole = spread(1.6, 1.5, 1.7, 1.8, 2.1, 2.9)
    errors = {"http_429": 12, "cut_off": 3}
    return replace(
        metrics(),
        requests=615,
        errors=errors,
        success_rate=Share(value=600 / 612, n=612, low=0.965, high=0.989),
        steady_output_tok_s=None,
        ttft_scheduled=late,
        e2e_scheduled=whole,
        tool=tool(client_bound=client_bound),
    )


def score(hits: int = 103, n: int = 120, task: str = "builtin:basic") -> TaskScore:
    share = Share(value=hits / n, n=n, low=hits / n - 0.06, high=hits / n + 0.05)
    every = Share(value=1.0, n=n, low=0.97, high=1.0)
    return TaskScore(task=task, sha256="0" * 64, score=share, answered=every, format_pass=every)
