"""A profile, an environment, metrics and failures for sessions to be exported."""

from typing import Any

from deploytui.profile.parse import parse_profile
from deploytui.profile.schema import Profile
from deploytui.record.facts import (
    Distribution,
    Environment,
    Failure,
    Gpu,
    Host,
    Share,
)
from deploytui.record.measured import Metrics, Quality, Spread, TaskScore, ToolError

GIB = 1 << 30
S = 1_000_000_000

PROFILE = """
schema = 1
name = "chat ✔"
baseline = "fast"

[workload]
prompt_tokens = 64
output_tokens = 16
requests = 8
load = { kind = "closed", concurrency = 2 }
warmup_requests = 2

[quality]
tasks = ["builtin:basic"]

[gates]
min_quality = 0.5
max_ttft_ms = { p95 = 500 }

[[candidates]]
name = "fast"
engine = "llamacpp"
model = "models/small.gguf"
env = { HF_TOKEN = "hunter2" }
settings = { threads = 2 }

[[candidates]]
name = "absent"
engine = "vllm"
model = "models/small.gguf"

[[candidates]]
name = "broken"
engine = "llamacpp"
model = "broken.gguf"

[[candidates]]
name = "dropped"
engine = "llamacpp"
model = "models/small.gguf"
"""

WITH_MOCK = PROFILE + '\n[[candidates]]\nname = "pretend"\nengine = "mock"\n'

NO_GPU = Environment(
    host=Host(hostname="node-7", boot_id="b00t", cpu="EPYC", cores=2, memory_bytes=24 * GIB, python="3.11"),
    gpu_missing="NVML Shared Library Not Found",
)
ONE_GPU = Environment(
    host=Host(hostname="node-7"),
    gpus=(Gpu(uuid="GPU-1", index=0, name="H100-80G", total_bytes=80 * GIB, compute_capability="9.0"),),
    driver="580.1",
    cuda="13.0",
)


def profile(text: str = PROFILE) -> Profile:
    return parse_profile(text, "test.toml")


def spread_of(n: int, middle: float) -> Distribution:
    """A distribution round `middle` whose percentiles are there as far as n allows."""
    if n == 0:
        return Distribution(n=0)
    return Distribution(
        n=n,
        mean=middle * 1.1,
        std=middle / 7 if n > 1 else None,
        min=middle / 3,
        p50=middle,
        p90=middle * 1.5,
        p95=middle * 1.7 if n >= 20 else None,
        p99=middle * 1.9 if n >= 100 else None,
        max=middle * 2,
    )


def metrics(n: int = 24, **changes: Any) -> Metrics:
    given: dict[str, Any] = {
        "requests": n,
        "ok": n,
        "duration_s": 7 / 3,
        "ttfr": spread_of(n, 0.1 / 3),
        "ttft": spread_of(n, 0.1),
        "ttfo": spread_of(n, 0.1),
        "tpot": spread_of(n, 0.01 / 7),
        "icl": spread_of(n * 10, 0.011),
        "e2e": spread_of(n, 0.4),
        "connect": spread_of(0, 0),
        "tokens_per_chunk": 1.0,
        "output_tok_s": 1000 / 7,
        "steady_output_tok_s": None,
        "request_s": n * 3 / 7,
        "goodput": None,
        "success_rate": Share(value=1.0, n=n, low=0.862, high=1.0),
        "prompt_tokens": Spread(n=n, min=64, median=64.0, mean=64.0, max=64),
        "output_tokens": Spread(n=n, min=16, median=16.0, mean=16.0, max=16),
        "short_outputs": 0,
        "cached_tokens": 0,
        "burst_share": 0.0,
        "bounds": {"ttft.p95": (0.15, 0.19)},
        "tool": ToolError(clock="user", lag_ms_p99=0.1, lag_ms_max=1 / 3),
    }
    return Metrics(**{**given, **changes})


TASK = TaskScore(
    task="builtin:basic",
    sha256="ab" * 32,
    score=Share(value=0.8125, n=16, low=0.57, high=0.934),
    answered=Share(value=1.0, n=16, low=0.806, high=1.0),
    format_pass=Share(value=6 / 7, n=7, low=0.487, high=0.974),
)
QUALITY = Quality(score=TASK.score, answered=TASK.answered, format_pass=TASK.format_pass, tasks=(TASK,))
MISSING_ENGINE = Failure(kind="not_installed", what="vllm is not installed.", why="No module named 'vllm'", fix="pip")
CUT_SHORT = Failure(
    kind="corrupt", what="The file is cut short.", why="tensor data out of bounds \x1b[31m", fix="Fetch"
)
