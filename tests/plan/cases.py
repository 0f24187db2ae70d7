"""Candidates and profiles that several tests look at."""

from typing import Any

from deploytui.profile.load_schema import Closed
from deploytui.profile.schema import Candidate, Gates, Profile, Quality, Settings, Workload

BF16 = Candidate(
    name="vllm-bf16",
    engine="vllm",
    model="Qwen/Qwen2.5-7B-Instruct",
    dtype="bfloat16",
    device="cuda",
    settings=Settings(max_model_len=8192, memory_share=0.9),
)
LONGER = Candidate(
    name="longer",
    engine="vllm",
    model="Qwen/Qwen2.5-7B-Instruct",
    dtype="bfloat16",
    device="cuda",
    settings=Settings(max_model_len=16384, memory_share=0.9),
)
AWQ = Candidate(
    name="awq",
    engine="vllm",
    model="Qwen/Qwen2.5-7B-Instruct-AWQ",
    dtype="float16",
    quantization="awq",
    device="cuda",
    settings=Settings(max_model_len=8192, memory_share=0.9),
)
SGLANG = Candidate(
    name="sglang",
    engine="sglang",
    model="Qwen/Qwen2.5-7B-Instruct",
    dtype="bfloat16",
    device="cuda",
    python="/opt/sglang/bin/python",
    args=("--attention-backend", "fa3"),
    settings=Settings(max_model_len=8192, memory_share=0.9),
)
GGUF_BF16 = Candidate(
    name="gguf-bf16",
    engine="llamacpp",
    model="/models/qwen2.5-7b-instruct-bf16.gguf",
    device="cuda",
    settings=Settings(max_model_len=8192, gpu_layers=99),
)
GGUF_Q4 = Candidate(
    name="gguf-q4",
    engine="llamacpp",
    model="/models/qwen2.5-7b-instruct-q4_k_m.gguf",
    device="cuda",
    settings=Settings(max_model_len=8192, gpu_layers=99),
)


def profile(
    *candidates: Candidate, baseline: str | None = None, gates: Gates | None = None, **workload: Any
) -> Profile:
    """A small profile; its workload has 20 requests in 3 repeats at concurrency 2 unless told otherwise."""
    asked: dict[str, Any] = {
        "prompt_tokens": 64,
        "requests": 20,
        "warmup_requests": 2,
        "load": Closed(concurrency=2),
    } | workload
    return Profile(
        workload=Workload(**asked),
        candidates=candidates or (BF16, LONGER),
        baseline=baseline,
        gates=gates or Gates(),
        quality=Quality(tasks=("builtin:basic", "mine.jsonl")),
    )
