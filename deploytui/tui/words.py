"""How the screen names things that the record names for machines."""

ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "tensorrt-llm": "TRT-LLM",
    "llamacpp": "llama.cpp",
    "tgi": "TGI",
    "transformers": "Transformers",
    "onnxruntime-genai": "ORT GenAI",
    "openai": "endpoint",
}
LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "e2e": "E2E"}
DECISION_SIGNS = {"accept": "✔", "tune": "~", "reject": "✘"}


def engine_title(name: str) -> str:
    """The engine's name as its makers write it."""
    return ENGINES.get(name, name)
